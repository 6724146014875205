// Users of the library import one module: messages, properties and reason codes are defined in the codec.
@_exported public import MQTTCodec
