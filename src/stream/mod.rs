//! Streams and their states.
//!
//! One file a state: what only an [`Idle`], a [`Prepared`] or a [`Capturing`] stream can do.
//! `any.rs` holds what every state can do and `eager.rs` what every state but `Capturing` can.
//! What must stay true here: a stream goes `Idle -> Prepared -> Capturing -> Idle` and no other
//! way (L1), every way out of a window closes it (L4), and a command that failed while recording
//! leaves no graph (L3).

mod allocator;
mod any;
mod capturing;
mod commands;
mod core;
mod eager;
mod failed;
mod idle;
mod memory;
mod pass;
mod prepared;
mod recording;
mod replay;
mod state;
mod support;
mod transitions;

pub use allocator::Allocator;
pub use any::Stream;
pub use eager::Mark;
pub use failed::Failed;
pub use pass::Pass;
pub use prepared::CaptureOptions;
pub use state::{Capturing, Eager, Idle, Prepared, State};
