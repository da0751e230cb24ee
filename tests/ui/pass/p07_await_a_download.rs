//! A download is awaited in a `Send` future.

use hip_capture::{Device, Result};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(task: impl Future<Output = T> + Send) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() -> Result<()> {
    let mut stream = Device::simulated()?.stream()?;
    let mut x = stream.allocator().alloc::<u32>(4)?;
    stream.pass().fill(&mut x, 9)?;
    let first: Result<u32> = block_on(async move {
        let elements = stream.read(&x)?.await?;
        let first = elements.read()?[0];
        Ok(first)
    });
    assert_eq!(first?, 9);
    Ok(())
}
