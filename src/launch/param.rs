//! Kernel parameters as types.

use std::marker::PhantomData;

use crate::buffer::Element;
use crate::driver::{Access, HostArgument, Parameter, Signature};

pub(crate) mod sealed {
    pub trait Param {}
    pub trait Params {}
}

/// A parameter through which a kernel reads a slice of `T`s and writes none.
#[derive(Debug)]
pub struct In<T>(PhantomData<fn() -> T>);

/// A parameter through which a kernel writes a slice of `T`s without reading what was there.
#[derive(Debug)]
pub struct Out<T>(PhantomData<fn() -> T>);

/// A parameter through which a kernel reads and writes a slice of `T`s.
#[derive(Debug)]
pub struct InOut<T>(PhantomData<fn() -> T>);

/// One parameter of a kernel: a scalar ([`Element`]) passed by value, or [`In`], [`Out`] or
/// [`InOut`] for a slice of device memory, passed as a pointer to its first element. The trait is
/// sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel parameter",
    note = "parameters are plain-data scalars, `In<T>`, `Out<T>` and `InOut<T>`"
)]
pub trait Param: sealed::Param + 'static {
    /// What a host kernel receives for it.
    type Host<'a>;

    /// What a requirement sees of its argument: the scalar's value, or the slice's length.
    type Shape;

    /// What the driver is told of it.
    #[doc(hidden)]
    const PARAMETER: Parameter;

    /// Makes the host kernel's argument.
    ///
    /// # Safety
    ///
    /// `argument` is for this parameter, as [`HostKernel::run`](crate::driver::HostKernel::run)
    /// asks.
    #[doc(hidden)]
    unsafe fn from_host<'a>(argument: &HostArgument) -> Self::Host<'a>;
}

const fn parameter<T: Element>(access: Access) -> Parameter {
    let (size, align) = (size_of::<T>() as u32, align_of::<T>() as u32);
    Parameter { access, size, align, type_name: TypeName::<T>::NAME }
}

struct TypeName<T>(PhantomData<T>);
impl<T> TypeName<T> {
    // `type_name` is not a constant function; the layout tells wrong signatures apart, and the
    // name is filled in where a signature is made.
    const NAME: &'static str = "";
}

impl<T: Element> sealed::Param for T {}
impl<T: Element> Param for T {
    type Host<'a> = T;
    type Shape = T;
    const PARAMETER: Parameter = parameter::<T>(Access::Scalar);

    unsafe fn from_host<'a>(argument: &HostArgument) -> Self::Host<'a> {
        // SAFETY: the caller vouches that `data` points to a readable `T`; any bits are one.
        unsafe { argument.data.cast::<T>().read_unaligned() }
    }
}

/// Implements the slice parameters: they differ in access and in the slice a host kernel sees.
macro_rules! slice_param {
    ($name:ident, $access:ident, $host:ty, $make:path) => {
        impl<T: Element> sealed::Param for $name<T> {}
        impl<T: Element> Param for $name<T> {
            type Host<'a> = $host;
            type Shape = usize;
            const PARAMETER: Parameter = parameter::<T>(Access::$access);

            unsafe fn from_host<'a>(argument: &HostArgument) -> Self::Host<'a> {
                let len = argument.bytes as usize / size_of::<T>().max(1);
                // SAFETY: the caller vouches that `data` points to `len` aligned elements that
                // live and are not touched in conflict during the call; any bits are a `T`.
                unsafe { $make(argument.data.cast::<T>(), len) }
            }
        }
    };
}

slice_param!(In, Read, &'a [T], shared);
slice_param!(Out, Write, &'a mut [T], std::slice::from_raw_parts_mut);
slice_param!(InOut, ReadWrite, &'a mut [T], std::slice::from_raw_parts_mut);

/// # Safety
/// As for [`std::slice::from_raw_parts`].
unsafe fn shared<'a, T>(data: *mut T, len: usize) -> &'a [T] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// The parameters of a kernel: a tuple of up to 16 [`Param`]s, as `(u32, In<f32>, Out<f32>)`.
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel parameters",
    note = "a list is a tuple of up to 16 parameters, as `(u32, In<f32>, Out<f32>)`"
)]
pub trait Params: sealed::Params + 'static {
    /// What a host kernel receives: a tuple of values, `&[T]` and `&mut [T]`.
    type Host<'a>;

    /// What a requirement sees: a tuple of the scalars' values and the slices' lengths.
    type Shape;

    /// The parameters as the driver compares them.
    #[doc(hidden)]
    fn signature() -> Signature;

    /// Makes the host kernel's arguments.
    ///
    /// # Safety
    ///
    /// As [`HostKernel::run`](crate::driver::HostKernel::run) asks.
    #[doc(hidden)]
    unsafe fn from_host<'a>(arguments: &[HostArgument]) -> Self::Host<'a>;
}

macro_rules! params {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Param),*> sealed::Params for ($($name,)*) {}
        impl<$($name: Param),*> Params for ($($name,)*) {
            type Host<'a> = ($($name::Host<'a>,)*);
            type Shape = ($($name::Shape,)*);

            fn signature() -> Signature {
                Signature::from_slice(&[$(named::<$name>()),*])
            }

            unsafe fn from_host<'a>(arguments: &[HostArgument]) -> Self::Host<'a> {
                // SAFETY: the caller vouches that each argument is for the parameter at its place.
                unsafe { ($($name::from_host(&arguments[$index]),)*) }
            }
        }
    };
}

/// A parameter with the name of its scalar or element type.
fn named<P: Param>() -> Parameter {
    let full = std::any::type_name::<P>();
    let type_name = match P::PARAMETER.access {
        Access::Scalar => full,
        // `…::In<f32>` without the wrapper.
        _ => full.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or(full),
    };
    Parameter { type_name, ..P::PARAMETER }
}

impl sealed::Params for () {}
impl Params for () {
    type Host<'a> = ();
    type Shape = ();

    fn signature() -> Signature {
        Signature::new()
    }

    unsafe fn from_host<'a>(_: &[HostArgument]) -> Self::Host<'a> {}
}

params!(A 0);
params!(A 0, B 1);
params!(A 0, B 1, C 2);
params!(A 0, B 1, C 2, D 3);
params!(A 0, B 1, C 2, D 3, E 4);
params!(A 0, B 1, C 2, D 3, E 4, F 5);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
params!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, Q 15);
