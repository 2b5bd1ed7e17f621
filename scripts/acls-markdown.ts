import { readConfig } from '../src/config/read.ts'
import { rightsMarkdown } from '../src/topics/rights.ts'
import { topicLayout } from '../src/roles/start/settings.ts'

const introduction = `# Rights at the brokers

Generated from \`src/topics/rights.ts\` and the [table of topics](topics.md) by \`npm run generate\`, for the default settings. This page is for those who grant rights at the brokers.
This page lists the rights that each role needs. The settings \`kafka.topicPrefix\`, \`kafka.groupId\` and \`retry.ladder\` change the names. \`sluice topics grow\` also changes names, for example to \`sluice.g2.memberships\` ([growing.md](growing.md)). With \`topics.check=off\`, no role needs DESCRIBE_CONFIGS or ALTER_CONFIGS.

When a role starts, it compares the rights that it has with the rights that it needs. This is possible if the cluster reports the rights of a principal, as Apache Kafka does. If rights are missing, the start ends with an error that lists
the operation, resource and principal of each.

READ and WRITE of a topic include DESCRIBE, READ of a group includes DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS. No role needs a right on the cluster. No role that keeps
running needs the right to delete.

A prefixed rule covers all topics at once. \`kafka-acls.sh\` writes DESCRIBE_CONFIGS as \`DescribeConfigs\`, and ALTER_CONFIGS as \`AlterConfigs\`:

\`\`\`
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker \\
  --operation Read --operation Write --operation DescribeConfigs --topic sluice. --resource-pattern-type prefixed
kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:sluice-worker --operation Read --group sluice
\`\`\`

Some cases need other rights:

- **The catalog in a file** (\`catalog.source=file\`, the default). The topic \`catalog\` doesn't exist then, and nobody needs rights on it, nor on the transactional id ([catalog-topic.md](catalog-topic.md)).
- **Retry topics of an earlier \`retry.ladder\`** need the same rights as the other retry topics, until they are empty.
- **Another topic prefix.** If the group of a worker is named after a topic prefix other than the default, the worker looks once for commits of
  the group \`sluice\`. If there may be such commits, give the worker DESCRIBE on this group.
- **The lag at the gateway.** A gateway can report the lag of the workers (\`sluice_group_lag_records\`), even while no worker runs. For this, it needs DESCRIBE on the workers' group and on all topics. Without
  these rights, it logs one warning, and alerts rely on what workers report.
- **Your own producers** need WRITE on \`events\`, \`audience-changes\` or \`deletions\`.
`

/** Returns the text of `docs/acls.md`. */
export function aclsMarkdown(): string {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  const scope = {
    layout: { ...topicLayout(config), hasCatalog: true },
    groupId: config.kafka.groupId,
    withSettings: true,
  }
  return introduction + rightsMarkdown(scope)
}
