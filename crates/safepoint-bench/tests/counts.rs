//! Counts of one round and of one stop, beside those of the bare loops; fails where one is more than a tenth above what is
//! written down.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn main() -> anyhow::Result<()> {
    // Relaxed: the counts of work that has ended, which the runtime's own hand-overs order before this.
    safepoint_bench::counts(|| [ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed)])
}

/// The system's allocator, and a count of what it is asked for. A growth in place counts as an allocation.
struct Counting;

fn count(bytes: usize) {
    // Relaxed: sums, and nothing else is read by them.
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; each method only counts and hands on to the system's"
)]
// SAFETY: every method hands its arguments unchanged to `System`, which fulfils the contract of the trait.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
