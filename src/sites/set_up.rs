//! Set-up by libraries, found in native chains and names of NVTX ranges: the calling line is innocent.

use crate::text::Names;
use crate::vocabulary::PatternId::{self, *};

#[derive(Debug)]
pub struct SetUp {
    /// Parts of names of functions or ranges.
    names: Names,
    pub pattern: PatternId,
    pub what: &'static str,
}

/// Sources: exported functions of cuDNN 8 and 9, PyTorch's Conv_v7.cpp and Conv_v8.cpp, NCCL 2.x, the CUDA driver and
/// runtime, TensorRT 8 to 10.
const ALL: &[SetUp] = &[
    SetUp {
        names: Names("cudnnFind cudnn_frontend::time_sorted_plan get_plans_from_find"),
        pattern: E07,
        what: "cuDNN times its algorithms for a shape that it has not met yet",
    },
    SetUp {
        names: Names("nvinfer1::builder nvinfer1::IBuilder buildSerializedNetwork buildEngineWithConfig"),
        pattern: E13,
        what: "TensorRT times its tactics while it builds an engine",
    },
    SetUp {
        names: Names("ncclCommInit ncclCommSplit initNCCLComm ncclTransportP2pSetup ncclGetUniqueId"),
        pattern: H13,
        what: "NCCL makes a communicator: ranks meet and connect",
    },
    SetUp {
        names: Names(
            "cuDevicePrimaryCtxRetain cuCtxCreate cudart::globalState::initializeDriver cudaDeviceReset \
             cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuCtxDestroy ncclCommDestroy ncclCommAbort \
             ncclCommFinalize __cudaUnregisterFatBinary __run_exit_handlers",
        ),
        pattern: G08,
        what: "a context or a communicator is made or taken down, which happens once",
    },
];

/// The set-up named by a chain (innermost first), else by a range around the wait, and the name itself.
pub fn find<'a, S: AsRef<str>>(chain: &'a [S], ranges: &'a [S]) -> Option<(&'static SetUp, &'a str)> {
    let names = chain.iter().chain(ranges.iter().rev()).map(AsRef::as_ref);
    let mut named = names.flat_map(|name| ALL.iter().map(move |set_up| (set_up, name)));
    named.find(|(set_up, name)| set_up.names.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn their_entries_say_that_they_are_set_up() {
        let own = |entry: &catalogue::Pattern| ALL.iter().any(|set_up| set_up.pattern == entry.id);
        assert!(catalogue::all().all(|entry| entry.sets_up == own(entry)));
    }
}
