// A log of numbers in Rust, without the standard library: a count, and then the numbers.
//
//     rustc -O -g --crate-type cdylib -C panic=abort -C link-arg=-nostdlib log_writer.rs -o log_writer.so
//
// `--cfg bug` counts before it stores.
#![no_std]

use core::sync::atomic::{AtomicU64, Ordering};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[no_mangle]
pub unsafe extern "C" fn append(log: *const AtomicU64, value: u64) -> u64 {
    let count = (*log).load(Ordering::Relaxed);
    let slot = &*log.add(1 + count as usize);
    if cfg!(bug) {
        (*log).store(count + 1, Ordering::Release);
        slot.store(value, Ordering::Relaxed);
    } else {
        slot.store(value, Ordering::Relaxed);
        (*log).store(count + 1, Ordering::Release);
    }
    count + 1
}

#[no_mangle]
pub unsafe extern "C" fn fill(log: *const AtomicU64, values: *const u8, length: usize) -> u64 {
    let mut count = 0;
    for value in core::slice::from_raw_parts(values, length) {
        count = append(log, u64::from(*value));
    }
    count
}
