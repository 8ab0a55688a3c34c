"""Header words of records, as layouts that tests make records by hand with."""

from __future__ import annotations

from fx_trace import records as r

PROVIDER_INFO_WORD = r.ProviderInfo.layout.header()
PROVIDER_SECTION_WORD = r.ProviderSection.layout.header()
PROVIDER_EVENT_WORD = r.ProviderEvent.layout.header()
TRACE_INFO_WORD = r.TraceInfo.layout.header()
INITIALIZATION = r.Initialization.layout.header()
STRING = r.StringRecord.layout.header()
THREAD = r.ThreadRecord.layout.header()
EVENT = r.Event.layout.header()
BLOB = r.Blob.layout.header()
USERSPACE_OBJECT = r.UserspaceObject.layout.header()
KERNEL_OBJECT = r.KernelObject.layout.header()
LEGACY_CONTEXT_SWITCH = r.LegacyContextSwitch.layout.header()
CONTEXT_SWITCH = r.ContextSwitch.layout.header()
THREAD_WAKEUP = r.ThreadWakeup.layout.header()
LOG = r.Log.layout.header()
PROFILER = r.UnknownProfiler.layout.header()
PROFILER_MODULE_WORD = r.ProfilerModule.layout.header()
PROFILER_MMAP_WORD = r.ProfilerMmap.layout.header()
PROFILER_BACKTRACE_WORD = r.ProfilerBacktrace.layout.header()
LARGE_BLOB = r.LargeBlob.layout.header()
LARGE_BLOB_METADATA_FORMAT = r.LargeBlobWithMetadata.layout.header(
    "In-band large BLOB record with metadata", 1
)
LARGE_BLOB_FORMAT = r.LargeBlob.layout.header("In-band large BLOB record without metadata", 1)
