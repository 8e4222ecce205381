//! Rows from a database, by its driver.

use super::{Driver, DriverAddress, DriverAnswer, DriverError, DriverNothing, DriverRequest};
use crate::fetch::{FetchError, FetchRequest, Source, no_such_host};
use crate::sender::Delivery;
use numakit_recording::{Batch, Header};

/// A database of which rows are fetched.
pub(crate) struct DriverSource<'a> {
    request: &'a FetchRequest<'a>,
    driver: Driver,
}

impl<'a> DriverSource<'a> {
    pub(crate) fn new(request: &'a FetchRequest<'a>, address: &DriverAddress) -> Result<Self, FetchError> {
        Ok(Self { request, driver: Driver::new(request.target, address)? })
    }

    fn ask(&mut self, request: &DriverRequest) -> Result<DriverAnswer, FetchError> {
        match self.driver.ask(request)? {
            DriverAnswer::Nothing(DriverNothing::Failed(why)) => Err(FetchError::Database(why)),
            DriverAnswer::Nothing(DriverNothing::Long) => Err(FetchError::Long),
            DriverAnswer::Delivery(Delivery::Denied(why) | Delivery::Down { why, .. }) => {
                Err(FetchError::Database(why))
            }
            answer => Ok(answer),
        }
    }
}

impl Source for DriverSource<'_> {
    fn hosts(&mut self) -> Result<Vec<String>, FetchError> {
        // No rows are that old, so the answer is which hosts there are.
        match self.ask(&DriverRequest::Latest { host: String::new(), before: 0 })? {
            DriverAnswer::Nothing(DriverNothing::Host(hosts)) => Ok(hosts),
            _ => Err(DriverError::Wrong.into()),
        }
    }

    fn header(&mut self) -> Result<Header, FetchError> {
        let (host, before) = (self.request.host.to_owned(), self.request.range.1);
        match self.ask(&DriverRequest::Latest { host, before })? {
            DriverAnswer::Header(header) => Ok(*header),
            DriverAnswer::Nothing(DriverNothing::Host(hosts)) => Err(no_such_host(self.request, Ok(hosts))),
            _ => Err(DriverError::Wrong.into()),
        }
    }

    fn rows(&mut self, header: &Header, (from, to): (u64, u64)) -> Result<Batch, FetchError> {
        match self.ask(&DriverRequest::Range { from, to })? {
            DriverAnswer::Rows(rows) => {
                rows.batch(header.series.len()).map_err(|error| DriverError::Wire(error).into())
            }
            _ => Err(DriverError::Wrong.into()),
        }
    }
}
