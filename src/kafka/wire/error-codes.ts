import { kafkajsFile } from './kafkajs-file.ts'

/**
 * Those error codes of Kafka that Sluice's code uses, by their names in Kafka. Source: the Kafka protocol,
 * error codes.
 */
export const errorCodes = {
  UNKNOWN_SERVER_ERROR: -1,
  NONE: 0,
  OFFSET_OUT_OF_RANGE: 1,
  CORRUPT_MESSAGE: 2,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  REQUEST_TIMED_OUT: 7,
  BROKER_NOT_AVAILABLE: 8,
  REPLICA_NOT_AVAILABLE: 9,
  MESSAGE_TOO_LARGE: 10,
  OFFSET_METADATA_TOO_LARGE: 12,
  NETWORK_EXCEPTION: 13,
  COORDINATOR_LOAD_IN_PROGRESS: 14,
  COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR: 16,
  RECORD_LIST_TOO_LARGE: 18,
  ILLEGAL_GENERATION: 22,
  INCONSISTENT_GROUP_PROTOCOL: 23,
  UNKNOWN_MEMBER_ID: 25,
  INVALID_SESSION_TIMEOUT: 26,
  REBALANCE_IN_PROGRESS: 27,
  INVALID_COMMIT_OFFSET_SIZE: 28,
  TOPIC_AUTHORIZATION_FAILED: 29,
  GROUP_AUTHORIZATION_FAILED: 30,
  UNSUPPORTED_VERSION: 35,
  OUT_OF_ORDER_SEQUENCE_NUMBER: 45,
  INVALID_PRODUCER_EPOCH: 47,
  INVALID_TXN_STATE: 48,
  INVALID_PRODUCER_ID_MAPPING: 49,
  CONCURRENT_TRANSACTIONS: 51,
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 53,
  OPERATION_NOT_ATTEMPTED: 55,
  KAFKA_STORAGE_ERROR: 56,
  UNKNOWN_PRODUCER_ID: 59,
  FETCH_SESSION_ID_NOT_FOUND: 70,
  INVALID_FETCH_SESSION_EPOCH: 71,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
  OFFSET_NOT_AVAILABLE: 78,
  MEMBER_ID_REQUIRED: 79,
  GROUP_MAX_SIZE_REACHED: 81,
  FENCED_INSTANCE_ID: 82,
  PRODUCER_FENCED: 90,
  UNKNOWN_TOPIC_ID: 100,
  INCONSISTENT_TOPIC_ID: 103,
} as const

const namesByCode = new Map<number, string>(Object.entries(errorCodes).map(([name, code]) => [code, name]))

/** Returns Kafka's name of an error code, or kafkajs' name if `errorCodes` lacks the code. */
export function errorName(code: number): string {
  return namesByCode.get(code) ?? protocolError(code).type ?? `error ${code}`
}

/** Returns Kafka's name of an error code, with its meaning. */
export function describeErrorCode(code: number): string {
  return `${errorName(code)}: ${protocolError(code).message}`
}

/** Returns true if the error code says that a record or a batch is too large for its topic. */
export function isTooLarge(code: number | undefined): boolean {
  return code === errorCodes.MESSAGE_TOO_LARGE || code === errorCodes.RECORD_LIST_TOO_LARGE
}

/** Returns the error that kafkajs throws for a code. `isProtocolError` recognizes such an error. */
export function protocolError(code: number): Error & { readonly type?: string } {
  type ErrorFile = { createErrorFromCode(code: number): Error & { readonly type?: string } }
  return kafkajsFile<ErrorFile>('kafkajs/src/protocol/error.js').createErrorFromCode(code)
}
