//! Replaying a graph on a stream.

use std::sync::Arc;

use super::core::StreamCore;
use crate::buffer::{Conflict, Uses};
use crate::driver::Site;
use crate::driver::timeline::Timeline;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::memory::Slice;

const OPERATION: &str = "replay";

impl StreamCore {
    /// Enqueues the graph, ordered after its last replay and after every use of its memory.
    ///
    /// As long as no other stream used what the graph touches, which one counter tells, a replay
    /// is the driver call and a few loads, however many nodes and slices the graph has.
    pub(super) fn replay(&mut self, graph: &mut Graph, site: Site) -> Result<()> {
        self.device.check_lost(OPERATION)?;
        if !graph.home().same_device(&self.timeline) {
            let (owner, user) = (graph.home().device(), self.device.ordinal());
            return Err(Error::WrongDevice {
                operation: OPERATION,
                object: "a graph",
                owner,
                user,
            });
        }
        // A replay that claims one block after another could meet another that claims the same in
        // another order, each waiting for the other's to reach the driver: those take turns.
        let claims_several = graph.pinned().len() > 1;
        self.timeline.enter();
        if !claims_several && graph.is_settled(&self.timeline, self.device.foreign_uses()) {
            let result = self.launch_graph(graph, site);
            self.timeline.leave();
            return result;
        }
        self.timeline.leave();
        let device = Arc::clone(&self.device);
        let _order = device.lock_order();
        // Nobody counts a foreign use while the lock is held.
        if !graph.is_settled(&self.timeline, self.device.foreign_uses()) {
            self.order_graph(graph)?;
        }
        self.launch_graph(graph, site)
    }

    fn launch_graph(&mut self, graph: &mut Graph, site: Site) -> Result<()> {
        let epoch = self.timeline.issued() + 1;
        let claimed = graph
            .pinned()
            .iter()
            .try_for_each(|pinned| self.claim(OPERATION, &pinned.block, epoch, pinned.write));
        self.timeline.note_replay(epoch);
        let launched = claimed.and_then(|()| {
            let launched = self.raw.graph_launch(graph.exec(), site);
            launched.map_err(|failure| self.error(OPERATION, failure))
        });
        // Also after a failure: claims above name this epoch.
        self.timeline.advance();
        launched?;
        graph.note_replay(&self.timeline, epoch);
        Ok(())
    }

    /// The slow way: orders this stream after the graph's last replay (L8) and after every use
    /// of each of its slices (L10), and marks the slices where this is not their own stream.
    fn order_graph(&mut self, graph: &mut Graph) -> Result<()> {
        if let Some((timeline, epoch)) = graph.last_replay() {
            self.order_after_use(&timeline, epoch)?;
        }
        let epoch = self.timeline.issued() + 1;
        let home = Arc::clone(graph.home());
        if !graph.foreign().is_empty() || !Arc::ptr_eq(&home, &self.timeline) {
            self.device.count_foreign_use();
        }
        for (slice, write) in graph.own() {
            self.order_slice(slice, &home, epoch, *write)?;
        }
        for (foreign, write) in graph.foreign() {
            self.order_slice(&foreign.slice, &foreign.home, epoch, *write)?;
        }
        graph.note_settled(self.device.foreign_uses());
        Ok(())
    }

    fn order_slice(
        &mut self,
        slice: &Slice<Uses>,
        home: &Arc<Timeline>,
        epoch: u64,
        write: bool,
    ) -> Result<()> {
        let uses = slice.tag();
        loop {
            let seen = |other: &_, epoch| self.has_seen(other, epoch);
            match uses.conflict(home, &self.timeline, false, write, seen) {
                None | Some(Conflict::AwaitsReplay) => break,
                Some(Conflict::Pending(other, epoch)) => self.order_after_use(&other, epoch)?,
            }
        }
        if !Arc::ptr_eq(home, &self.timeline) {
            // The graph keeps the slice until the replay is over.
            uses.mark_foreign(&self.timeline, epoch, write, false);
        }
        Ok(())
    }

    fn order_after_use(&mut self, other: &Timeline, epoch: u64) -> Result<()> {
        if other.id() == self.timeline.id() || self.has_seen(other, epoch) {
            return Ok(());
        }
        self.order_after(other, epoch).map_err(|failure| self.error(OPERATION, failure))
    }
}
