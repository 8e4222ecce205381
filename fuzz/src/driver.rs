//! What `numa` and `numa-drivers` say to each other.

use numakit_push::driver::{DriverAnswer, DriverMessage, DriverRequest, EncodedRows};

/// The first byte chooses the side; messages follow until one is wrong. True if rows came that fit their description.
pub fn messages(input: &[u8]) -> bool {
    let Some((side, mut rest)) = input.split_first() else { return false };
    let (mut columns, mut has_rows) = (0, false);
    let mut take = |rows: &EncodedRows, columns: usize| match rows.batch(columns) {
        Ok(batch) => {
            assert_eq!(batch.columns.len(), columns);
            has_rows |= !batch.is_empty();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    };
    if side % 2 == 0 {
        while let Ok(Some(request)) = DriverRequest::receive(&mut rest) {
            match request {
                DriverRequest::Describe(header) => columns = header.series.len(),
                DriverRequest::Rows(rows) => take(&rows, columns),
                DriverRequest::Open(_) | DriverRequest::Latest { .. } | DriverRequest::Range { .. } => {}
            }
        }
    } else {
        while let Ok(Some(answer)) = DriverAnswer::receive(&mut rest) {
            match answer {
                DriverAnswer::Header(header) => columns = header.series.len(),
                DriverAnswer::Rows(rows) => take(&rows, columns),
                DriverAnswer::Delivery(_) | DriverAnswer::Nothing(_) => {}
            }
        }
    }
    has_rows
}
