//! Arguments of a launch, lowered on the stack to what the driver takes.

use std::ffi::c_void;
use std::ptr::from_ref;

use super::param::{In, InOut, Out, Param, Params};
use crate::buffer::{Buffer, DeviceSlice, Element, View, ViewMut};
use crate::driver::{Access, Argument, DeviceAddress};

mod sealed {
    pub trait AsArg<P> {}
    pub trait Args<P> {}
}

/// A slice that a command uses, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceUse<'a> {
    pub(crate) memory: &'a DeviceSlice,
    pub(crate) access: Access,
}

impl SliceUse<'_> {
    pub(crate) fn writes(&self) -> bool {
        matches!(self.access, Access::Write | Access::ReadWrite)
    }

    pub(crate) fn reads(&self) -> bool {
        matches!(self.access, Access::Read | Access::ReadWrite)
    }
}

/// An argument in the form whose address the driver is given.
#[doc(hidden)]
pub struct Lowered<'a, T> {
    value: LoweredValue<'a, T>,
}

enum LoweredValue<'a, T> {
    Scalar(T),
    Slice { address: DeviceAddress, bytes: u64, memory: Option<&'a DeviceSlice>, access: Access },
}

impl<T> std::fmt::Debug for Lowered<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lowered").finish_non_exhaustive()
    }
}

impl<'a, T> Lowered<'a, T> {
    fn scalar(value: T) -> Self {
        Lowered { value: LoweredValue::Scalar(value) }
    }

    fn slice(
        address: DeviceAddress,
        bytes: u64,
        memory: Option<&'a DeviceSlice>,
        access: Access,
    ) -> Self {
        Lowered { value: LoweredValue::Slice { address, bytes, memory, access } }
    }

    fn argument(&self) -> Argument {
        match &self.value {
            LoweredValue::Scalar(value) => Argument {
                data: from_ref(value).cast::<c_void>(),
                bytes: size_of::<T>() as u64,
                access: Access::Scalar,
            },
            LoweredValue::Slice { address, bytes, access, .. } => Argument {
                data: from_ref(address).cast::<c_void>(),
                bytes: *bytes,
                access: *access,
            },
        }
    }

    fn slice_use(&self) -> Option<SliceUse<'a>> {
        match self.value {
            LoweredValue::Scalar(_) => None,
            LoweredValue::Slice { memory, access, .. } => {
                memory.map(|memory| SliceUse { memory, access })
            }
        }
    }
}

/// A value that can be passed for the parameter `P`: the scalar itself; `&Buffer<T>` (`&*b` of a
/// `&mut Buffer<T>`) or [`View<T>`](View) for [`In<T>`](In); `&mut Buffer<T>` or [`ViewMut<T>`](ViewMut) for
/// [`Out<T>`](Out) and [`InOut<T>`](InOut). The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the kernel parameter `{P}`",
    label = "not an argument for `{P}`",
    note = "pass a scalar by value, `&buffer` for `In`, `&mut buffer` for `Out` and `InOut`, of the same element type"
)]
pub trait AsArg<P: Param>: sealed::AsArg<P> {
    #[doc(hidden)]
    type Scalar;
    #[doc(hidden)]
    fn shape(&self) -> P::Shape;
    #[doc(hidden)]
    fn lower<'a>(self) -> Lowered<'a, Self::Scalar>
    where
        Self: 'a;
}

impl<T: Element> sealed::AsArg<T> for T {}
impl<T: Element> AsArg<T> for T {
    type Scalar = T;
    fn shape(&self) -> T {
        *self
    }
    fn lower<'a>(self) -> Lowered<'a, T> {
        Lowered::scalar(self)
    }
}

macro_rules! slice_arg {
    ($param:ident, $access:ident, $view:ident, $($arg:ty),*) => {$(
        impl<T: Element> sealed::AsArg<$param<T>> for $arg {}
        impl<T: Element> AsArg<$param<T>> for $arg {
            type Scalar = ();
            fn shape(&self) -> usize {
                self.len()
            }
            fn lower<'a>(self) -> Lowered<'a, ()>
            where
                Self: 'a,
            {
                let view: $view<'a, T> = self.into();
                Lowered::slice(view.address(), view.bytes(), view.memory(), Access::$access)
            }
        }
    )*};
}

slice_arg!(In, Read, View, &Buffer<T>, View<'_, T>);
slice_arg!(Out, Write, ViewMut, &mut Buffer<T>, ViewMut<'_, T>);
slice_arg!(InOut, ReadWrite, ViewMut, &mut Buffer<T>, ViewMut<'_, T>);

type Receive<'f, R> = dyn FnMut(&[Argument], &[Option<SliceUse<'_>>]) -> R + 'f;

/// What the lowered arguments of a launch are handed to.
#[doc(hidden)]
pub struct Receiver<'f, R> {
    pub(crate) receive: &'f mut Receive<'f, R>,
}

impl<R> std::fmt::Debug for Receiver<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// A tuple of arguments that fits the parameters `P`, in number, order, kind and element type.
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit the kernel's parameters",
    label = "the kernel takes `{P}`",
    note = "pass a tuple with one argument for each parameter, in order"
)]
pub trait Args<P: Params>: sealed::Args<P> {
    #[doc(hidden)]
    fn shape(&self) -> P::Shape;
    #[doc(hidden)]
    fn lower<R>(self, receiver: Receiver<'_, R>) -> R;
}

macro_rules! args {
    ($($param:ident $arg:ident $index:tt),*) => {
        impl<$($param: Param, $arg: AsArg<$param>),*> sealed::Args<($($param,)*)> for ($($arg,)*) {}
        impl<$($param: Param, $arg: AsArg<$param>),*> Args<($($param,)*)> for ($($arg,)*) {
            fn shape(&self) -> ($($param::Shape,)*) {
                ($(self.$index.shape(),)*)
            }

            fn lower<R>(self, receiver: Receiver<'_, R>) -> R {
                let lowered = ($(self.$index.lower(),)*);
                (receiver.receive)(
                    &[$(lowered.$index.argument()),*],
                    &[$(lowered.$index.slice_use()),*],
                )
            }
        }
    };
}

impl sealed::Args<()> for () {}
impl Args<()> for () {
    fn shape(&self) {}

    fn lower<R>(self, receiver: Receiver<'_, R>) -> R {
        (receiver.receive)(&[], &[])
    }
}

args!(A A1 0);
args!(A A1 0, B B1 1);
args!(A A1 0, B B1 1, C C1 2);
args!(A A1 0, B B1 1, C C1 2, D D1 3);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10, L L1 11);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10, L L1 11, M M1 12);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10, L L1 11, M M1 12, N N1 13);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10, L L1 11, M M1 12, N N1 13, O O1 14);
args!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5, G G1 6, H H1 7, I I1 8, J J1 9, K K1 10, L L1 11, M M1 12, N N1 13, O O1 14, Q Q1 15);
