//! A device with threads of its own.

use std::sync::mpsc;
use std::thread::{self, ThreadId};

use super::*;
use crate::driver::HostFunction;

fn threaded(threads: usize) -> Bench {
    Bench::on(
        Simulator::new(SimOptions::default().threads(threads).sanitizer(Sanitizer::Off)).unwrap(),
    )
}

#[test]
fn work_goes_on_by_itself_and_in_order() {
    for threads in [1, 4] {
        let bench = threaded(threads);
        let (add, mul) = (bench.function("add"), bench.function("mul"));
        let other = bench.sim.stream_create(0).unwrap();
        let event = bench.sim.event_create(0, false).unwrap();
        for _ in 0..100 {
            bench.change(bench.stream, add, 1);
        }
        // SAFETY: the handles are alive.
        unsafe {
            bench.sim.event_record(event, bench.stream).unwrap();
            bench.sim.stream_wait_event(other, event).unwrap();
            bench.change(other, mul, 3);
            while !bench.sim.stream_query(other).unwrap() {
                thread::yield_now();
            }
        }
        assert_eq!(bench.read(), [300; COUNT]);
    }
}

unsafe extern "C" fn tell(data: *mut c_void) {
    // SAFETY: the test passes a sender that outlives the command.
    let sender = unsafe { &*data.cast::<mpsc::Sender<ThreadId>>() };
    sender.send(thread::current().id()).unwrap();
}

#[test]
fn host_functions_run_on_a_thread_of_the_device() {
    let bench = threaded(2);
    let (sender, receiver) = mpsc::channel::<ThreadId>();
    let data = std::ptr::from_ref(&sender).cast_mut().cast();
    let function = HostFunction { call: tell, data };
    // SAFETY: the sender outlives the command.
    unsafe { bench.sim.host_function(bench.stream, function, site()).unwrap() };
    // Nobody waits by the driver; polling is enough to get it done.
    // SAFETY: the handle is alive.
    while !unsafe { bench.sim.stream_query(bench.stream).unwrap() } {}
    assert_ne!(receiver.recv().unwrap(), thread::current().id());
}

#[test]
fn a_panic_on_a_thread_of_the_device_loses_it_as_ever() {
    let bench = threaded(1);
    let panics = bench.function("panics");
    bench.launch_on(bench.stream, panics, &[], &[]).unwrap();
    let failure = bench.sync(bench.stream).unwrap_err();
    assert_eq!(failure.status.raw(), 719);
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.free(0, bench.data).unwrap();
        bench.sim.stream_destroy(bench.stream).unwrap();
    }
}
