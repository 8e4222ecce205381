//! Arrays that are used together: each element of the first array is the sum of the elements of all others.

use super::Region;

const ELEMENT: usize = size_of::<u64>();

/// Arrays of one length in a region.
#[derive(Debug)]
pub struct Together<'a> {
    arrays: Vec<*mut u64>,
    elements: usize,
    region: std::marker::PhantomData<&'a mut Region>,
}

impl<'a> Together<'a> {
    /// Arrays of `bytes` that begin at these distances from the region's start; `None` if an array is not within the region,
    /// or not aligned.
    pub fn within(region: &'a mut Region, starts: &[usize], bytes: usize) -> Option<Self> {
        let (room, first) = (region.bytes(), region.start());
        let fits = |start: usize| {
            start.is_multiple_of(ELEMENT) && start.checked_add(bytes).is_some_and(|end| end <= room)
        };
        let array = |start: usize| fits(start).then(|| first.wrapping_add(start).cast::<u64>());
        let arrays = starts.iter().map(|&start| array(start)).collect::<Option<Vec<_>>>()?;
        Some(Self { arrays, elements: bytes / ELEMENT, region: std::marker::PhantomData })
    }

    /// Each element of the first array becomes the sum of those of all others at its place; returns the number of loads and
    /// stores.
    pub fn sum(&mut self) -> usize {
        let Some((to, from)) = self.arrays.split_first() else { return 0 };
        for at in 0..self.elements {
            let mut sum: u64 = 0;
            for array in from {
                // SAFETY: `within` has found that the array's elements are in the region, which is borrowed for as long.
                sum = sum.wrapping_add(unsafe { array.add(at).read_volatile() });
            }
            // SAFETY: as above, and the region is borrowed for writing.
            unsafe { to.add(at).write_volatile(sum) };
        }
        self.elements * self.arrays.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_array_has_the_sums_of_the_others() {
        let mut region = Region::map(1 << 16).unwrap();
        for (at, value) in region.doubles_mut().iter_mut().enumerate() {
            *value = f64::from_bits(at as u64);
        }
        let starts = [0, 4096, 8192 + 8];
        let accesses = Together::within(&mut region, &starts, 80).unwrap().sum();
        assert_eq!(accesses, 30);
        let value = |at: usize| region.doubles()[at].to_bits();
        assert!((0..10).all(|at| value(at) == (512 + at + 1025 + at) as u64));
        assert_eq!((value(10), value(512)), (10, 512));
    }

    #[test]
    fn arrays_are_within_the_region() {
        let mut region = Region::map(4096).unwrap();
        for (start, bytes, fits) in
            [(4088, 8, true), (4088, 16, false), (4, 8, false), (usize::MAX - 7, 8, false)]
        {
            assert_eq!(Together::within(&mut region, &[0, start], bytes).is_some(), fits, "{start} {bytes}");
        }
        assert_eq!(Together::within(&mut region, &[], 8).unwrap().sum(), 0);
    }
}
