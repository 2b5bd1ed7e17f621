import kafkajs, { type AclEntry, type Admin } from 'kafkajs'
import { freePorts } from '../../src/development/free-ports.ts'
import type { Right } from '../../src/topics/rights.ts'
import { otherProgram } from './kafka.ts'
import { type SingleBroker, startSingleBroker } from './single-broker.ts'

/**
 * A Kafka broker with access rules. A user with a password may do only what a rule allows. At the address
 * `direct`, the test itself connects without a password, and may do everything.
 */
export type AuthorizedKafka = SingleBroker & {
  /** The address (`host:port`) for users with a password. */
  address: string
  /** Returns the settings for the user's login, as variables of Sluice. */
  login(user: string): Record<string, string>
  allow(user: string, rights: readonly Right[]): Promise<void>
  withdraw(user: string, right: Right): Promise<void>
}

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs

const resources = {
  Topic: AclResourceTypes.TOPIC,
  Group: AclResourceTypes.GROUP,
  TransactionalId: AclResourceTypes.TRANSACTIONAL_ID,
} as const
const operations = {
  READ: AclOperationTypes.READ,
  WRITE: AclOperationTypes.WRITE,
  CREATE: AclOperationTypes.CREATE,
  DELETE: AclOperationTypes.DELETE,
  ALTER: AclOperationTypes.ALTER,
  DESCRIBE: AclOperationTypes.DESCRIBE,
  DESCRIBE_CONFIGS: AclOperationTypes.DESCRIBE_CONFIGS,
  ALTER_CONFIGS: AclOperationTypes.ALTER_CONFIGS,
} as const

export async function startAuthorizedKafka(users: readonly string[]): Promise<AuthorizedKafka> {
  const [port = 0] = await freePorts(1)
  const known = users.map((user) => `user_${user}="${user}-secret"`).join(' ')
  const broker = await startSingleBroker({
    extra: {
      listeners: [{ name: 'LOGIN', protocol: 'SASL_PLAINTEXT', port }],
      properties: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        // Each client of the plain listener has the name ANONYMOUS. Only the test and the broker itself
        // connect to it.
        'super.users': 'User:ANONYMOUS',
        'listener.name.login.sasl.enabled.mechanisms': 'PLAIN',
        'listener.name.login.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required ${known};`,
      },
    },
  })
  const admin: Admin = otherProgram([broker.direct]).admin()
  await admin.connect()
  return {
    ...broker,
    address: `127.0.0.1:${port}`,
    login: (user) => ({
      SLUICE_KAFKA_BROKERS: `127.0.0.1:${port}`,
      SLUICE_KAFKA_SASL_MECHANISM: 'plain',
      SLUICE_KAFKA_SASL_USERNAME: user,
      SLUICE_KAFKA_SASL_PASSWORD: `${user}-secret`,
    }),
    async allow(user, rights) {
      await admin.createAcls({ acl: rights.map((right) => ruleOf(user, right)) })
    },
    async withdraw(user, right) {
      await admin.deleteAcls({ filters: [ruleOf(user, right)] })
    },
    async stop() {
      await admin.disconnect()
      await broker.stop()
    },
  }
}

function ruleOf(user: string, { resource, name, operation }: Right): AclEntry {
  return {
    principal: `User:${user}`,
    host: '*',
    operation: operations[operation],
    permissionType: AclPermissionTypes.ALLOW,
    resourceType: resources[resource],
    resourceName: name,
    resourcePatternType: ResourcePatternTypes.LITERAL,
  }
}
