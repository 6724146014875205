// MQTTCodec
