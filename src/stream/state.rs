//! The states of a stream, as types without values.

use std::convert::Infallible;
use std::marker::PhantomData;

mod sealed {
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a stream state",
        label = "not a stream state",
        note = "the states are `Idle`, `Prepared` and `Capturing`; the trait is sealed"
    )]
    pub trait Sealed {}
}

/// Makes what holds it stay on its thread; named so that the compiler says why.
#[derive(Debug)]
pub(super) struct BoundToTheCapturingThread(PhantomData<*mut ()>);

/// A state that a [`Stream`](crate::Stream) can be in. The trait is sealed: the states are
/// [`Idle`], [`Prepared`] and [`Capturing`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream state",
    label = "not a stream state",
    note = "the states are `Idle`, `Prepared` and `Capturing`; the trait is sealed"
)]
pub trait State: sealed::Sealed + 'static {
    #[doc(hidden)]
    const NAME: &'static str;
}

/// A state in which commands run: [`Idle`] and [`Prepared`]. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a stream in state `{Self}` may be recording and cannot do this",
    label = "not possible while capturing",
    note = "on a `Stream<Capturing>`, end the capture first: `end_capture()` gives back a `Stream<Idle>`",
    note = "in a function that is generic over the state, ask for `S: Eager`"
)]
pub trait Eager: State {}

/// Commands run, memory grows when needed, nothing is being captured.
#[derive(Debug)]
pub enum Idle {}

/// Commands run, as the warmup of a capture: every slice handed out is held, so that the
/// recording finds the whole working set in the pool.
#[derive(Debug)]
pub enum Prepared {}

/// Commands are recorded and do not run. Neither `Send` nor `Sync`: the driver demands that the
/// thread that began a capture ends it (L5).
#[derive(Debug)]
pub struct Capturing {
    _thread: BoundToTheCapturingThread,
    _never: Infallible,
}

impl sealed::Sealed for Idle {}
impl sealed::Sealed for Prepared {}
impl sealed::Sealed for Capturing {}

impl State for Idle {
    const NAME: &'static str = "Idle";
}
impl State for Prepared {
    const NAME: &'static str = "Prepared";
}
impl State for Capturing {
    const NAME: &'static str = "Capturing";
}

impl Eager for Idle {}
impl Eager for Prepared {}
