// A library with the standard library: allocation, panics, output, locks.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

#[no_mangle]
pub extern "C" fn fill(log: *const AtomicU64, values: *const u64, count: usize) {
    let log = unsafe { std::slice::from_raw_parts(log, 16) };
    let given = unsafe { std::slice::from_raw_parts(values, count) };
    let tens: Vec<u64> = given.iter().map(|value| value * 10).collect();
    for (number, value) in tens.iter().enumerate() {
        log[1 + number].store(*value, Ordering::Relaxed);
        log[0].store(number as u64 + 1, Ordering::Release);
    }
}

#[no_mangle]
pub extern "C" fn at(index: usize) -> u64 {
    let values = vec![10u64, 20, 30];
    values[index]
}

static SAID: Mutex<u64> = Mutex::new(0);

#[no_mangle]
pub extern "C" fn say(what: u64) -> u64 {
    println!("said {what}");
    let mut said = SAID.lock().unwrap();
    *said = what + 1;
    *said
}

#[cfg(threads)]
#[no_mangle]
pub extern "C" fn threads() {
    std::thread::spawn(|| {}).join().unwrap();
}
