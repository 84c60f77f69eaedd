/**
 * The messages of the services, in the language of .proto files. Reflection describes them to clients such as grpcurl. They have
 * the fields of the public definitions, without options and without comments.
 */
export interface ProtoFile {
  readonly name: string
  readonly package: string
  readonly imports: readonly string[]
  readonly text: string
}

const wrappers: ProtoFile = {
  name: 'google/protobuf/wrappers.proto',
  package: 'google.protobuf',
  imports: [],
  text: `
    message DoubleValue { double value = 1; }
    message FloatValue { float value = 1; }
    message Int64Value { int64 value = 1; }
    message UInt64Value { uint64 value = 1; }
    message Int32Value { int32 value = 1; }
    message UInt32Value { uint32 value = 1; }
    message BoolValue { bool value = 1; }
    message StringValue { string value = 1; }
    message BytesValue { bytes value = 1; }`,
}

const duration: ProtoFile = {
  name: 'google/protobuf/duration.proto',
  package: 'google.protobuf',
  imports: [],
  text: 'message Duration { int64 seconds = 1; int32 nanos = 2; }',
}

const timestamp: ProtoFile = {
  name: 'google/protobuf/timestamp.proto',
  package: 'google.protobuf',
  imports: [],
  text: 'message Timestamp { int64 seconds = 1; int32 nanos = 2; }',
}

const struct: ProtoFile = {
  name: 'google/protobuf/struct.proto',
  package: 'google.protobuf',
  imports: [],
  text: `
    message Struct { map<string, Value> fields = 1; }
    message Value {
      oneof kind {
        NullValue null_value = 1;
        double number_value = 2;
        string string_value = 3;
        bool bool_value = 4;
        Struct struct_value = 5;
        ListValue list_value = 6;
      }
    }
    enum NullValue { NULL_VALUE = 0; }
    message ListValue { repeated Value values = 1; }`,
}

const headerValue: ProtoFile = {
  name: 'envoy/config/core/v3/base.proto',
  package: 'envoy.config.core.v3',
  imports: [],
  text: 'message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }',
}

const unit: ProtoFile = {
  name: 'envoy/type/v3/ratelimit_unit.proto',
  package: 'envoy.type.v3',
  imports: [],
  text: 'enum RateLimitUnit { UNKNOWN = 0; SECOND = 1; MINUTE = 2; HOUR = 3; DAY = 4; MONTH = 5; YEAR = 6; }',
}

const descriptor: ProtoFile = {
  name: 'envoy/extensions/common/ratelimit/v3/ratelimit.proto',
  package: 'envoy.extensions.common.ratelimit.v3',
  imports: [unit.name, wrappers.name],
  text: `
    message RateLimitDescriptor {
      message Entry { string key = 1; string value = 2; }
      message RateLimitOverride {
        uint32 requests_per_unit = 1;
        envoy.type.v3.RateLimitUnit unit = 2;
        google.protobuf.UInt32Value unit_multiplier = 3;
      }
      repeated Entry entries = 1;
      RateLimitOverride limit = 2;
      google.protobuf.UInt64Value hits_addend = 3;
      bool is_negative_hits = 4;
    }`,
}

const rateLimit: ProtoFile = {
  name: 'envoy/service/ratelimit/v3/rls.proto',
  package: 'envoy.service.ratelimit.v3',
  imports: [headerValue.name, descriptor.name, duration.name, struct.name, timestamp.name, wrappers.name],
  text: `
    service RateLimitService { rpc ShouldRateLimit (RateLimitRequest) returns (RateLimitResponse); }
    message RateLimitRequest {
      string domain = 1;
      repeated envoy.extensions.common.ratelimit.v3.RateLimitDescriptor descriptors = 2;
      uint32 hits_addend = 3;
    }
    message RateLimitResponse {
      enum Code { UNKNOWN = 0; OK = 1; OVER_LIMIT = 2; }
      message RateLimit {
        enum Unit { UNKNOWN = 0; SECOND = 1; MINUTE = 2; HOUR = 3; DAY = 4; WEEK = 7; MONTH = 5; YEAR = 6; }
        string name = 3;
        uint32 requests_per_unit = 1;
        Unit unit = 2;
        google.protobuf.UInt32Value unit_multiplier = 4;
      }
      message Quota {
        uint32 requests = 1;
        oneof expiration_specifier { google.protobuf.Timestamp valid_until = 2; }
        string id = 3;
      }
      message DescriptorStatus {
        Code code = 1;
        RateLimit current_limit = 2;
        uint32 limit_remaining = 3;
        google.protobuf.Duration duration_until_reset = 4;
        Quota quota = 5;
      }
      Code overall_code = 1;
      repeated DescriptorStatus statuses = 2;
      repeated envoy.config.core.v3.HeaderValue response_headers_to_add = 3;
      repeated envoy.config.core.v3.HeaderValue request_headers_to_add = 4;
      bytes raw_body = 5;
      google.protobuf.Struct dynamic_metadata = 6;
      Quota quota = 7;
    }`,
}

const health: ProtoFile = {
  name: 'grpc/health/v1/health.proto',
  package: 'grpc.health.v1',
  imports: [],
  text: `
    message HealthCheckRequest { string service = 1; }
    message HealthCheckResponse {
      enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
      ServingStatus status = 1;
    }
    service Health {
      rpc Check (HealthCheckRequest) returns (HealthCheckResponse);
      rpc Watch (HealthCheckRequest) returns (stream HealthCheckResponse);
    }`,
}

const reflection = (version: 'v1' | 'v1alpha'): ProtoFile => ({
  name: `grpc/reflection/${version}/reflection.proto`,
  package: `grpc.reflection.${version}`,
  imports: [],
  text: `
    service ServerReflection {
      rpc ServerReflectionInfo (stream ServerReflectionRequest) returns (stream ServerReflectionResponse);
    }
    message ServerReflectionRequest {
      string host = 1;
      oneof message_request {
        string file_by_filename = 3;
        string file_containing_symbol = 4;
        ExtensionRequest file_containing_extension = 5;
        string all_extension_numbers_of_type = 6;
        string list_services = 7;
      }
    }
    message ExtensionRequest { string containing_type = 1; int32 extension_number = 2; }
    message ServerReflectionResponse {
      string valid_host = 1;
      ServerReflectionRequest original_request = 2;
      oneof message_response {
        FileDescriptorResponse file_descriptor_response = 4;
        ExtensionNumberResponse all_extension_numbers_response = 5;
        ListServiceResponse list_services_response = 6;
        ErrorResponse error_response = 7;
      }
    }
    message FileDescriptorResponse { repeated bytes file_descriptor_proto = 1; }
    message ExtensionNumberResponse { string base_type_name = 1; repeated int32 extension_number = 2; }
    message ListServiceResponse { repeated ServiceResponse service = 1; }
    message ServiceResponse { string name = 1; }
    message ErrorResponse { int32 error_code = 1; string error_message = 2; }`,
})

/** Each file after those that it imports. */
export const protoFiles: readonly ProtoFile[] = [
  wrappers,
  duration,
  timestamp,
  struct,
  headerValue,
  unit,
  descriptor,
  rateLimit,
  health,
  reflection('v1'),
  reflection('v1alpha'),
]
