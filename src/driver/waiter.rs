//! The thread that wakes futures.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread::JoinHandle;

use super::timeline::Timeline;

struct Request {
    timeline: Arc<Timeline>,
    epoch: u64,
    waker: Waker,
}

/// Waits for epochs on a thread of its own and wakes whoever asked. The thread starts with the
/// first request and ends with the device.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    requests: Sender<Request>,
    thread: JoinHandle<()>,
}

impl Waiter {
    /// Calls `waker` when the epoch is over or cannot be waited for.
    pub(crate) fn wake_after(&self, timeline: &Arc<Timeline>, epoch: u64, waker: &Waker) {
        let request = Request { timeline: Arc::clone(timeline), epoch, waker: waker.clone() };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let (requests, incoming) = channel();
            let name = "hip-capture-waiter".to_owned();
            let started = std::thread::Builder::new().name(name).spawn(move || serve(&incoming));
            if let Ok(thread) = started {
                *running = Some(Running { requests, thread });
            }
        }
        let sent = match &*running {
            Some(running) => running.requests.send(request).map_err(|refused| refused.0),
            None => Err(request),
        };
        drop(running);
        if let Err(request) = sent {
            // No thread to be had: let the executor poll again rather than sleep for ever.
            request.waker.wake();
        }
    }
}

fn serve(requests: &Receiver<Request>) {
    for Request { timeline, epoch, waker } in requests {
        // A failure is not lost: the future that is woken asks again and returns it.
        let _ = timeline.wait(epoch);
        drop(timeline);
        waker.wake();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { requests, thread }) = running {
            drop(requests);
            // The last owner may be a future that this very thread wakes and thereby drops.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                debug_assert!(false, "the waiter panicked");
            }
        }
    }
}
