import LoopContext

typealias Waiter<Value: Sendable> = CallWaiter<Value, MQTTClientError>
