//! The way of every command to the driver: check, order, mark, enqueue, count.
//!
//! One function, [`StreamCore::command`], is that way for all commands in all states, so that
//! what is checked eagerly is checked while recording too, and a command that fails in a window
//! poisons it wherever it fails.

use std::sync::Arc;

use super::core::{StreamCore, Window};
use crate::buffer::{Conflict, Element, HostUse, PinnedBlock, View, ViewMut};
use crate::driver::{
    Access, Argument, Copy, Failure, Fill, FillPattern, Grid, Launch, Place, Site,
};
use crate::error::{Error, Result};
use crate::graph::{Command, RecordedPinned};
use crate::launch::{Kernel, ModuleCore, Params, SliceUse};

/// What a command uses beside slices.
#[derive(Clone, Copy)]
enum Beside<'a> {
    Nothing,
    Module(&'a Arc<ModuleCore>),
    /// A page-locked block, and whether the device writes it.
    Pinned(&'a Arc<PinnedBlock>, bool),
}

impl StreamCore {
    pub(super) fn launch<P: Params>(
        &mut self,
        kernel: &Kernel<P>,
        grid: Grid,
        arguments: &[Argument],
        uses: &[Option<SliceUse<'_>>],
        site: Site,
    ) -> Result<()> {
        // An empty grid has nothing to do and is no command.
        if grid.is_empty() {
            return Ok(());
        }
        let function = kernel.function();
        let label = || Command::Launch { kernel: Arc::clone(kernel.shared_name()), grid };
        self.command("launch", uses, Beside::Module(kernel.module()), label, |core| {
            grid.check(kernel.shared_name(), core.device.properties())?;
            let launch = Launch { function, grid, arguments, site };
            // SAFETY: the kernel's module is kept by `command` until the work is over; the
            // arguments match the parameters vouched for in `Module::kernel`; the slices are kept
            // and ordered by `command`.
            let launched = unsafe { core.driver().launch(core.raw.raw(), &launch) };
            launched.map_err(|failure| core.error("launch", failure))
        })
    }

    pub(super) fn copy<T: Element>(
        &mut self,
        from: View<'_, T>,
        to: ViewMut<'_, T>,
        site: Site,
    ) -> Result<()> {
        let uses = [used(from.memory(), Access::Read), used(to.memory(), Access::Write)];
        let (bytes, lens) = (from.bytes(), (from.len(), to.len()));
        let copy = Copy {
            to: Place::Device(to.address()),
            from: Place::Device(from.address()),
            bytes,
            site,
        };
        self.transfer(Command::Copy { bytes }, &uses, Beside::Nothing, lens, &copy)
    }

    pub(super) fn upload<T: Element>(
        &mut self,
        block: &Arc<PinnedBlock>,
        len: usize,
        to: ViewMut<'_, T>,
        site: Site,
    ) -> Result<()> {
        let (bytes, lens) = (to.bytes(), (len, to.len()));
        let from = Place::Host(block.data().as_ptr());
        let copy = Copy { to: Place::Device(to.address()), from, bytes, site };
        let uses = [used(to.memory(), Access::Write)];
        self.transfer(Command::Upload { bytes }, &uses, Beside::Pinned(block, false), lens, &copy)
    }

    pub(super) fn download<T: Element>(
        &mut self,
        from: View<'_, T>,
        block: &Arc<PinnedBlock>,
        len: usize,
        site: Site,
    ) -> Result<()> {
        let (bytes, lens) = (from.bytes(), (from.len(), len));
        let to = Place::Host(block.data().as_ptr());
        let copy = Copy { to, from: Place::Device(from.address()), bytes, site };
        let uses = [used(from.memory(), Access::Read)];
        self.transfer(Command::Download { bytes }, &uses, Beside::Pinned(block, true), lens, &copy)
    }

    pub(super) fn fill<T: Element>(
        &mut self,
        to: ViewMut<'_, T>,
        value: T,
        site: Site,
    ) -> Result<()> {
        let bytes = to.bytes();
        if bytes == 0 {
            return Ok(());
        }
        let uses = [used(to.memory(), Access::Write)];
        self.command(
            "fill",
            &uses,
            Beside::Nothing,
            || Command::Fill { bytes },
            |core| {
                let pattern = pattern_of(bytemuck::bytes_of(&value))?;
                let count = bytes / pattern.bytes();
                let fill = Fill { to: to.address(), pattern, count, site };
                // SAFETY: the range is inside its slice, which is kept and ordered by `command`.
                let filled = unsafe { core.driver().fill(core.raw.raw(), &fill) };
                filled.map_err(|failure| core.error("fill", failure))
            },
        )
    }

    /// A copy of any direction.
    fn transfer(
        &mut self,
        command: Command,
        uses: &[Option<SliceUse<'_>>],
        beside: Beside<'_>,
        (source_len, destination_len): (usize, usize),
        copy: &Copy,
    ) -> Result<()> {
        let operation = command.name();
        if source_len == destination_len && copy.bytes == 0 {
            return Ok(());
        }
        self.command(
            operation,
            uses,
            beside,
            || command,
            |core| {
                if source_len != destination_len {
                    return Err(Error::LengthMismatch { operation, source_len, destination_len });
                }
                // SAFETY: both ends are `bytes` long: a range inside a slice, or a whole block of
                // page-locked memory; both are kept and ordered by `command`.
                let copied = unsafe { core.driver().copy(core.raw.raw(), copy) };
                copied.map_err(|failure| core.error(operation, failure))
            },
        )
    }

    /// The one way of a command: see the module's documentation.
    fn command(
        &mut self,
        operation: &'static str,
        uses: &[Option<SliceUse<'_>>],
        beside: Beside<'_>,
        label: impl FnOnce() -> Command,
        enqueue: impl FnOnce(&mut StreamCore) -> Result<()>,
    ) -> Result<()> {
        let result = if self.is_recording() {
            self.record(operation, uses, beside, label, enqueue)
        } else {
            self.run(operation, uses, beside, enqueue)
        };
        if let Window::Capturing(recording) = &mut self.window {
            recording.note(operation, result.as_ref().err());
        }
        result
    }

    /// Counts a command that was refused on its way here, as one that failed.
    pub(super) fn refuse(&mut self, operation: &'static str, error: Error) -> Error {
        if let Window::Capturing(recording) = &mut self.window {
            recording.note(operation, Some(&error));
        }
        error
    }

    /// Enqueues a command that runs.
    fn run(
        &mut self,
        operation: &'static str,
        uses: &[Option<SliceUse<'_>>],
        beside: Beside<'_>,
        enqueue: impl FnOnce(&mut StreamCore) -> Result<()>,
    ) -> Result<()> {
        self.device.check_lost(operation)?;
        self.check_beside(operation, beside)?;
        let slow = uses.iter().flatten().any(|one| !self.is_plain(one));
        // The lock is of the device, which the core keeps; only uses that involve a second
        // stream take it.
        let device = slow.then(|| Arc::clone(&self.device));
        let _order = device.as_ref().map(|device| device.lock_order());
        if slow {
            for one in uses.iter().flatten().filter(|one| !self.owns(one)) {
                self.check_device(operation, one)?;
                self.device.count_foreign_use();
            }
            for one in uses.iter().flatten() {
                self.order(operation, one)?;
            }
        }
        let epoch = self.timeline.issued() + 1;
        if let Beside::Pinned(block, write) = beside {
            self.claim(operation, block, epoch, write)?;
        }
        for one in uses.iter().flatten() {
            self.mark(one, epoch);
        }
        let result = enqueue(self);
        // Also after a failure: marks above name this epoch, and nothing is left to wait for.
        self.timeline.advance();
        if let Beside::Module(module) = beside {
            self.keep_module(module);
        }
        result
    }

    /// Hands a command to the driver to be recorded, and keeps what it uses for the graph (L6).
    fn record(
        &mut self,
        operation: &'static str,
        uses: &[Option<SliceUse<'_>>],
        beside: Beside<'_>,
        label: impl FnOnce() -> Command,
        enqueue: impl FnOnce(&mut StreamCore) -> Result<()>,
    ) -> Result<()> {
        self.device.check_lost(operation)?;
        self.check_beside(operation, beside)?;
        for one in uses.iter().flatten() {
            self.check_recordable(operation, one)?;
        }
        enqueue(self)?;
        for one in uses.iter().flatten() {
            self.retain(one);
        }
        let Window::Capturing(recording) = &mut self.window else { return Ok(()) };
        recording.recorded.push(label());
        match beside {
            Beside::Nothing => {}
            Beside::Module(module) => {
                if module.is_new_to(recording.id) && !planted!("graph without its modules") {
                    recording.modules.push(Arc::clone(module));
                }
            }
            Beside::Pinned(block, write) => {
                if planted!("graph without its pinned blocks") {
                    return Ok(());
                }
                if block.is_new_to(recording.id) {
                    recording.pinned.push(RecordedPinned { block: Arc::clone(block), write });
                } else if write {
                    let known = recording.pinned.iter_mut().find(|p| Arc::ptr_eq(&p.block, block));
                    if let Some(known) = known {
                        known.write = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes the use of a page-locked block, ordered after those of other streams.
    pub(super) fn claim(
        &mut self,
        operation: &'static str,
        block: &PinnedBlock,
        epoch: u64,
        write: bool,
    ) -> Result<()> {
        if planted!("claim no pinned block") {
            return Ok(());
        }
        for HostUse { timeline, epoch, .. } in block.conflicts(&self.timeline, write) {
            if !timeline.same_device(&self.timeline) {
                // Streams of different devices cannot be made to wait for each other here.
                timeline.wait(epoch).map_err(|failure| timeline.error(operation, failure))?;
            } else if !self.has_seen(&timeline, epoch) {
                self.order_after(&timeline, epoch)
                    .map_err(|failure| self.error(operation, failure))?;
            }
        }
        block.claim(operation, HostUse { timeline: Arc::clone(&self.timeline), epoch, write })
    }

    #[inline]
    fn owns(&self, one: &SliceUse<'_>) -> bool {
        self.heap.owns(&one.memory.slice)
    }

    /// Whether the use is ordered by this stream alone.
    #[inline]
    fn is_plain(&self, one: &SliceUse<'_>) -> bool {
        self.owns(one) && !one.memory.slice.tag().needs_attention()
    }

    fn check_device(&self, operation: &'static str, one: &SliceUse<'_>) -> Result<()> {
        let home = &one.memory.home;
        if home.same_device(&self.timeline) {
            return Ok(());
        }
        let (owner, user) = (home.device(), self.device.ordinal());
        Err(Error::WrongDevice { operation, object: "a buffer", owner, user })
    }

    fn check_beside(&self, operation: &'static str, beside: Beside<'_>) -> Result<()> {
        match beside {
            Beside::Module(module) if !module.is_on(&self.device) => {
                let (owner, user) = (module.device(), self.device.ordinal());
                Err(Error::WrongDevice { operation, object: "the kernel's module", owner, user })
            }
            _ => Ok(()),
        }
    }

    /// Orders this stream after every use of the slice that a new use has to wait for (L10).
    fn order(&mut self, operation: &'static str, one: &SliceUse<'_>) -> Result<()> {
        let uses = one.memory.slice.tag();
        loop {
            let seen = |other: &_, epoch| self.has_seen(other, epoch);
            let reads = one.reads();
            let conflict =
                uses.conflict(&one.memory.home, &self.timeline, reads, one.writes(), seen);
            match conflict {
                None => return Ok(()),
                Some(Conflict::AwaitsReplay) => return Err(Error::NotYetReplayed { operation }),
                Some(Conflict::Pending(other, epoch)) => self
                    .order_after(&other, epoch)
                    .map_err(|failure: Failure| self.error(operation, failure))?,
            }
        }
    }

    #[inline]
    fn mark(&mut self, one: &SliceUse<'_>, epoch: u64) {
        let uses = one.memory.slice.tag();
        if self.owns(one) {
            uses.mark_home(epoch, one.writes());
        } else if uses.mark_foreign(&self.timeline, epoch, one.writes(), true)
            && !planted!("do not keep an imported slice")
        {
            self.imports.push(one.memory.clone());
        }
        if one.writes() && uses.needs_attention() {
            uses.has_content();
        }
    }

    /// A recorded command runs at every replay, so it can wait for nothing now: what other
    /// streams do with the slice has to be ordered before the window (L9, L10).
    fn check_recordable(&self, operation: &'static str, one: &SliceUse<'_>) -> Result<()> {
        if self.is_plain(one) {
            return Ok(());
        }
        self.check_device(operation, one)?;
        let uses = one.memory.slice.tag();
        let seen = |other: &_, epoch| self.has_seen(other, epoch);
        match uses.conflict(&one.memory.home, &self.timeline, false, one.writes(), seen) {
            Some(Conflict::Pending(other, _)) => {
                let (other, stream) = (other.id(), self.timeline.id());
                Err(Error::Unordered { operation, other, stream })
            }
            // The content comes with the replays that are ordered before this graph's.
            Some(Conflict::AwaitsReplay) | None => Ok(()),
        }
    }

    fn retain(&mut self, one: &SliceUse<'_>) {
        let owned = self.owns(one);
        let Window::Capturing(recording) = &mut self.window else { return };
        if owned {
            self.heap.touch(&one.memory.slice, one.writes());
            return;
        }
        if one.writes() {
            one.memory.slice.tag().mark_recorded_write(recording.id);
        }
        if one.memory.slice.tag().is_new_to(recording.id) {
            recording.foreign.push(one.memory.clone());
        }
    }

    #[inline]
    fn keep_module(&mut self, module: &Arc<ModuleCore>) {
        if planted!("unload a module in use") {
            return;
        }
        if !self.modules.iter().any(|kept| Arc::ptr_eq(kept, module)) {
            self.modules.push(Arc::clone(module));
        }
    }
}

fn used(memory: Option<&crate::buffer::DeviceSlice>, access: Access) -> Option<SliceUse<'_>> {
    memory.map(|memory| SliceUse { memory, access })
}

/// The widest pattern the driver can fill with that repeats to `value`.
fn pattern_of(value: &[u8]) -> Result<FillPattern> {
    match *value {
        [a] => Ok(FillPattern::Byte(a)),
        [a, b] => Ok(FillPattern::Half(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Ok(FillPattern::Word(u32::from_ne_bytes([a, b, c, d]))),
        [first, ref rest @ ..] if rest.iter().all(|byte| *byte == first) => {
            Ok(FillPattern::Byte(first))
        }
        _ => Err(Error::FillPattern { bytes: value.len() }),
    }
}
