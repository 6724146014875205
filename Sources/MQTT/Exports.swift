// One import is enough for those who use the library: its messages, properties and reason codes are the codec's.
@_exported public import MQTTCodec
