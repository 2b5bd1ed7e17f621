import { chmodSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureJars, kafkaVersion } from '../../src/development/jars.ts'
import { ensureDownload } from '../../src/development/maven-download.ts'

const copyDependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'

/** The names of Kafka's command-line scripts, and the classes that they start. */
const scripts = {
  'kafka-configs.sh': 'kafka.admin.ConfigCommand',
  'kafka-console-consumer.sh': 'org.apache.kafka.tools.consumer.ConsoleConsumer',
  'kafka-consumer-groups.sh': 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand',
  'kafka-topics.sh': 'org.apache.kafka.tools.TopicCommand',
}

/** Writes Kafka's command-line scripts into a folder. A distribution of Kafka has them in `bin`. */
export async function writeKafkaScripts(folder: string): Promise<void> {
  const libs = await ensureJars(report)
  const tools = await ensureDownload(
    {
      name: `kafka-tools-${kafkaVersion}`,
      product: `Kafka's tools ${kafkaVersion}`,
      megabytes: 1,
      async fetch(part, maven) {
        await writeFile(join(part, 'pom.xml'), pom)
        const to = join(part, 'tools')
        // All other jars that the tools need are among the broker's jars.
        await maven([
          '-f',
          join(part, 'pom.xml'),
          copyDependencies,
          '-DexcludeTransitive=true',
          `-DoutputDirectory=${to}`,
        ])
        return to
      },
    },
    report,
  )
  for (const [name, main] of Object.entries(scripts)) {
    const line = `exec java -Xmx128m -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp '${tools}/*:${libs}/*' ${main} "$@"`
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, name), 0o755)
  }
}

function report(line: string): void {
  process.stderr.write(`kafka: ${line}\n`)
}

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId>
  <artifactId>tools</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>${kafkaVersion}</version>
    </dependency>
  </dependencies>
</project>
`
