//! Facts that the compiler checks: who may cross threads, and what a state costs.

use static_assertions::{assert_eq_size, assert_impl_all, assert_not_impl_any, const_assert};

use crate::{
    Allocator, Buffer, Capturing, Code, Device, Download, Error, Failed, Graph, Idle, Kernel, Mark,
    Module, Pass, Pinned, Prepared, Ref, RefMut, Stream, View, ViewMut,
};

// A device is a shared handle.
assert_impl_all!(Device: Send, Sync, Clone);

// All work on a stream goes through `&mut self`, so sharing one gives nothing but a look at it.
assert_impl_all!(Stream<Idle>: Send, Sync);
assert_impl_all!(Stream<Prepared>: Send, Sync);
// The driver demands that the thread which began a capture ends it (L5).
assert_not_impl_any!(Stream<Capturing>: Send, Sync);
// A pass may be recording, so it stays on its thread; no two handles on a stream exist at once.
assert_not_impl_any!(Pass<'static>: Send, Sync, Clone);
assert_impl_all!(Allocator<'static, Idle>: Send, Sync);
assert_not_impl_any!(Allocator<'static, Capturing>: Send, Sync);
assert_not_impl_any!(Stream<Idle>: Clone);

// Buffers have no host access: sharing one is a question of order, not of aliasing.
assert_impl_all!(Buffer<f32>: Send, Sync);
assert_not_impl_any!(Buffer<f32>: Clone);
assert_impl_all!(View<'static, f32>: Send, Sync, Copy);
assert_impl_all!(ViewMut<'static, f32>: Send, Sync);
assert_not_impl_any!(ViewMut<'static, f32>: Clone);
// Page-locked memory is plain memory behind guards.
assert_impl_all!(Pinned<f32>: Send, Sync);
assert_impl_all!(Ref<'static, f32>: Send, Sync);
assert_impl_all!(RefMut<'static, f32>: Send, Sync);
// A download can be awaited on any executor.
assert_impl_all!(Download<f32>: Send, Sync, std::future::Future, Unpin);
assert_impl_all!(Mark: Send, Sync);

// A graph moves between threads, but drivers do not order two launches of one executable (L8).
assert_impl_all!(Graph: Send);
assert_not_impl_any!(Graph: Sync, Clone);
assert_impl_all!(Kernel<(f32,)>: Send, Sync, Clone);
assert_impl_all!(Module: Send, Sync, Clone);
assert_impl_all!(Code: Send, Sync, Clone);

// Errors travel as `Box<dyn Error + Send + Sync>`; a capturing stream is never inside one.
assert_impl_all!(Error: std::error::Error, Send, Sync, Clone);
assert_impl_all!(Failed<Idle>: std::error::Error, Send, Sync);
assert_impl_all!(Failed<Prepared>: std::error::Error, Send, Sync);

// A state adds no bytes: a stream is one pointer in every state, and so is a failed transition.
assert_eq_size!(Stream<Idle>, usize);
assert_eq_size!(Stream<Prepared>, usize);
assert_eq_size!(Stream<Capturing>, usize);
assert_eq_size!(Failed<Idle>, usize);
// The states themselves have no values.
const_assert!(size_of::<Idle>() == 0 && size_of::<Capturing>() == 0);
// Results of commands travel by value on every launch.
const_assert!(size_of::<Error>() <= 80);
