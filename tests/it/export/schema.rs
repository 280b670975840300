//! Which tables and columns each nsys version writes, as read off real exports.

/// An nsys version whose SQLite layout differs from its neighbours'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schema {
    /// 2020.4 to 2021.x: no metadata, no PROCESSES, no ENUM tables, GPUs in two tables.
    V2020,
    /// 2022.1: EXPORT_META_DATA, PROCESSES, wide TARGET_INFO_GPU.
    V2022_1,
    /// 2023.4: META_DATA_EXPORT and _CAPTURE, green contexts, ENUM tables.
    V2023_4,
    /// 2024.6: NVTX payloads, `syncType` counts from 0.
    V2024_6,
    /// 2025.3 with CUDA 13: `eventSyncId`, hardly any row for device synchronisation.
    V2025_3,
    /// 2026.2: rows in no order, wider kernels, `syncType` as CUPTI documents it.
    V2026_2,
}

use Schema::*;

impl Schema {
    /// Oldest first.
    pub const ALL: [Schema; 6] = [V2020, V2022_1, V2023_4, V2024_6, V2025_3, V2026_2];

    /// EXPORT_PRODUCT_VERSION and EXPORT_SCHEMA_VERSION; the oldest exports have no such rows.
    pub fn versions(self) -> Option<(&'static str, &'static str)> {
        match self {
            V2020 => None,
            V2022_1 => Some(("2022.1.1.61", "2.9.1")),
            V2023_4 => Some(("2023.4.4.54", "3.7.2")),
            V2024_6 => Some(("2024.6.2.225", "3.16.1")),
            V2025_3 => Some(("2025.3.2.0", "3.20.3")),
            V2026_2 => Some(("2026.2.1.210", "3.25.0")),
        }
    }

    pub fn metadata_table(self) -> Option<&'static str> {
        match self {
            V2020 => None,
            V2022_1 => Some("EXPORT_META_DATA"),
            _ => Some("META_DATA_EXPORT"),
        }
    }

    /// Whether Python frames can leave the report at all (`--include-json`, `--include-blobs`).
    pub fn exports_payloads(self) -> bool {
        self >= V2024_6
    }

    pub fn tables(self) -> impl Iterator<Item = &'static Table> {
        TABLES.iter().filter(move |table| (table.since..=table.until).contains(&self))
    }

    pub fn table(self, name: &str) -> Option<&'static Table> {
        self.tables().find(|table| table.name == name)
    }

    fn parse(text: &str) -> Schema {
        match text {
            "22" => V2022_1,
            "23" => V2023_4,
            "24" => V2024_6,
            "25" => V2025_3,
            "26" => V2026_2,
            other => panic!("no schema is called {other}"),
        }
    }
}

/// A table: its columns in order, one word each.
///
/// `name` alone is a nullable INTEGER; `!` adds NOT NULL, `:T` and `:R` make it TEXT or REAL, and `+25` says that it
/// came with the 2025 schema.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    columns: &'static str,
    pub key: &'static str,
    /// Written even when empty.
    pub always: bool,
    since: Schema,
    until: Schema,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: &'static str,
    pub not_null: bool,
}

impl Table {
    pub fn columns(&self, schema: Schema) -> Vec<Column> {
        self.columns.split_whitespace().filter_map(|word| column(word, schema)).collect()
    }

    const fn since(mut self, schema: Schema) -> Self {
        self.since = schema;
        self
    }

    const fn until(mut self, schema: Schema) -> Self {
        self.until = schema;
        self
    }

    const fn key(mut self, key: &'static str) -> Self {
        self.key = key;
        self
    }

    const fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

fn column(word: &'static str, schema: Schema) -> Option<Column> {
    let (word, since) =
        word.split_once('+').map_or((word, V2020), |(word, since)| (word, Schema::parse(since)));
    let (word, not_null) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
    let (name, kind) = match word.split_once(':') {
        Some((name, "T")) => (name, "TEXT"),
        Some((name, _)) => (name, "REAL"),
        None => (word, "INTEGER"),
    };
    (since <= schema).then_some(Column { name, kind, not_null })
}

const fn table(name: &'static str, columns: &'static str) -> Table {
    Table { name, columns, key: "", always: false, since: V2020, until: V2026_2 }
}

const CHAIN: &str =
    "id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!";
const NAME_VALUE: &str = "name:T! value:T";
const ENUM: &str = "id! name:T label:T";

pub const TABLES: &[Table] = &[
    table("StringIds", "id! value:T!").key("id").always(),
    table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "start! end! deviceId! contextId! greenContextId+23 streamId! correlationId globalPid demangledName! \
         shortName! mangledName+22 launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! \
         blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! \
         sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone+26 qmdPreexitDone+26 \
         qmdLastCtaDone+26 graphId+26 clusterX+26 clusterY+26 clusterZ+26 clusterSchedulingPolicy+26 \
         maxPotentialClusterSize+26 maxActiveClusters+26 sharedMemoryRequestedPercentage+26 \
         tensorSizeMinusOneElements:T!+26",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "start! end! deviceId! contextId! greenContextId+23 streamId! correlationId globalPid bytes! copyKind! \
         deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId \
         virtualAddress+22 copyCount+25",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        "start! end! deviceId! contextId! greenContextId+23 streamId! correlationId globalPid value! bytes! \
         graphNodeId memKind",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        "start! end! deviceId! contextId! greenContextId+23 streamId! correlationId globalPid deprecatedSyncType+25 \
         syncType! eventId! eventSyncId+25",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        "timestamp+26 deviceId! contextId! greenContextId+23 streamId! correlationId globalPid eventId! eventSyncId+25",
    ),
    table(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "start! end! deviceId! contextId! greenContextId+23 streamId! correlationId globalPid graphId! graphExecId!",
    ),
    table("CUDA_CALLCHAINS", "id! symbol! module! unresolved originalIP stackDepth!").key("id, stackDepth"),
    table(
        "NVTX_EVENTS",
        "start! end eventType! rangeId category color text:T globalTid endGlobalTid textId domainId uint64Value \
         int64Value doubleValue:R uint32Value int32Value floatValue:R jsonTextId jsonText:T binaryData:T+24",
    ),
    table("NVTX_PAYLOAD_SCHEMAS", "domainId schemaId name:T type flags numEntries payloadSize alignTo").since(V2024_6),
    table(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES",
        "domainId! schemaId! idx! flags type name:T description:T arrayOrUnionDetail offset",
    )
    .since(V2024_6),
    table("COMPOSITE_EVENTS", "id! start! cpu threadState globalTid cpuCycles!").key("id"),
    table("SCHED_EVENTS", "start! cpu! isSchedIn! globalTid threadState threadBlock"),
    table("SAMPLING_CALLCHAINS", CHAIN).key("id, stackDepth"),
    table(
        "OSRT_API",
        "start! end! eventClass! globalTid correlationId nameId! returnValue! nestingLevel callchainId!",
    )
    .until(V2020),
    table(
        "OSRT_API",
        "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId! argumentsId!+26",
    )
    .since(V2022_1),
    table("OSRT_CALLCHAINS", CHAIN).key("id, stackDepth"),
    table("PROCESSES", "globalPid pid name:T").since(V2022_1),
    table("ThreadNames", "nameId! priority globalTid"),
    table("DIAGNOSTIC_EVENT", "timestamp! timestampType! source! severity! text:T! globalPid").since(V2024_6),
    table("TARGET_INFO_GPU", "vmId! deviceId! name:T busLocation:T isDiscrete").until(V2020),
    table(
        "TARGET_INFO_GPU",
        "vmId! id! name:T busLocation:T isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId \
         uuid:T luid chipName:T cuDevice ctxswDevPath:T ctrlDevPath:T revision nodeMask constantMemory maxIPC \
         maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp \
         asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ \
         maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor",
    )
    .since(V2022_1),
    table(
        "TARGET_INFO_CUDA_GPU",
        "vmId! name:T! pciBusId:T globalMemoryBandwidth! globalMemorySize! constantMemorySize! l2CacheSize! \
         numThreadsPerWarp! coreClockRate! numMemcpyEngines! numMultiprocessors! maxIPC! maxWarpsPerMultiprocessor! \
         maxBlocksPerMultiprocessor! maxRegistersPerBlock! maxSharedMemoryPerBlock! maxThreadsPerBlock! maxBlockDimX! \
         maxBlockDimY! maxBlockDimZ! maxGridDimX! maxGridDimY! maxGridDimZ! computeCapabilityMajor! \
         computeCapabilityMinor! deviceId! pid maxSharedMemoryPerMultiprocessor maxRegistersPerMultiprocessor",
    )
    .until(V2020),
    table("TARGET_INFO_CUDA_DEVICE", "gpuId cudaId! pid! uuid:T+26 numMultiprocessors+26").since(V2025_3),
    table("TARGET_INFO_CUDA_NULL_STREAM", "streamId! hwId! vmId! processId! deviceId! contextId!").until(V2022_1),
    table(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext \
         numMultiprocessors+26 numTpcs+26 tpcMask:T+26 workqueueResourceId+26 workqueueConcurrencyLimit+26 \
         workqueueSharingScope+26",
    )
    .since(V2023_4),
    table("TARGET_INFO_CUDA_STREAM", "streamId! hwId! vmId! processId! contextId! priority! flag!"),
    table("TARGET_INFO_SESSION_START_TIME", "utcEpochNs utcTime:T localTime:T systemClockNs+26").since(V2022_1),
    table("ANALYSIS_DETAILS", "globalVid! duration! startTime! stopTime!").since(V2022_1),
    table("ENUM_CUPTI_SYNC_TYPE", ENUM).key("id").since(V2023_4).always(),
    table("ENUM_NSYS_EVENT_CLASS", ENUM).key("id").since(V2023_4).always(),
    table("EXPORT_META_DATA", NAME_VALUE).since(V2022_1).until(V2022_1),
    table("META_DATA_CAPTURE", NAME_VALUE).since(V2023_4),
    table("META_DATA_EXPORT", NAME_VALUE).since(V2023_4),
];
