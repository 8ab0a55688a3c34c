"""pprof's profiles, as its profile.proto defines the fields that we use."""

from __future__ import annotations

import functools
from typing import Any

import pytest


@functools.cache
def profile_class() -> Any:
    """`perftools.profiles.Profile`, as pprof's profile.proto defines the fields that we use."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    messages: dict[str, list[tuple[str, int, str, bool]]] = {
        "Profile": [
            ("sample_type", 1, "ValueType", True), ("sample", 2, "Sample", True),
            ("location", 4, "Location", True), ("function", 5, "Function", True),
            ("string_table", 6, "string", True), ("duration_nanos", 10, "int64", False),
            ("default_sample_type", 14, "int64", False),
        ],
        "ValueType": [("type", 1, "int64", False), ("unit", 2, "int64", False)],
        "Sample": [("location_id", 1, "uint64", True), ("value", 2, "int64", True),
                   ("label", 3, "Label", True)],
        "Label": [("key", 1, "int64", False), ("str", 2, "int64", False)],
        "Location": [("id", 1, "uint64", False), ("line", 4, "Line", True)],
        "Line": [("function_id", 1, "uint64", False), ("line", 2, "int64", False)],
        "Function": [("id", 1, "uint64", False), ("name", 2, "int64", False),
                     ("system_name", 3, "int64", False), ("filename", 4, "int64", False),
                     ("start_line", 5, "int64", False)],
    }  # fmt: skip
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package="perftools.profiles", syntax="proto3"
    )
    plain = {"int64": kinds.TYPE_INT64, "uint64": kinds.TYPE_UINT64, "string": kinds.TYPE_STRING}
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            type_number = plain.get(kind, kinds.TYPE_MESSAGE)
            descriptor = message.field.add(name=field, number=number, type=type_number, label=label)
            if kind not in plain:
                descriptor.type_name = f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))
