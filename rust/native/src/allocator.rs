//! The allocator of Rust's code: jemalloc, of which a thread of its own gives back what is free for a second.
//!
//! It keeps the engine's memory out of glibc's heap. Protobuf's runtime for Python trims that after every 10,000 of its
//! frees, in the thread that answers calls, and looks at all that is free in it. Other C libraries keep their allocator:
//! protobuf does not trim theirs, and a jemalloc for macOS has no such thread and does not start if it is asked for one.

use std::ffi::c_char;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Few threads allocate at a time: two arenas do. jemalloc's manual describes the options, and `_RJEM_MALLOC_CONF` in the
/// environment overrides them.
#[allow(
    unsafe_code,
    reason = "jemalloc declares this name as a pointer to a string that ends with a zero"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &c_char = {
    let options = c"background_thread:true,narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0";
    // SAFETY: the string is there as long as the program.
    unsafe { &*options.as_ptr() }
};
