//! Programs at the driver trait: what they are made of, and how they run.

pub mod draft;
pub mod order;
pub mod planner;
pub mod program;
pub mod reference;
pub mod world;
