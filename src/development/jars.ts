import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureDownload, findDownload, type MavenDownload } from './maven-download.ts'
import type { Report } from './running-kafka.ts'

/** The version of every Kafka that `src/development` starts, on Java and in Docker. */
export const kafkaVersion = '4.3.1'

const copyDependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'

function downloadOf(version: string): MavenDownload {
  return {
    name: `kafka-${version}`,
    product: `Apache Kafka ${version}`,
    megabytes: 45,
    async fetch(part, maven) {
      const pomFile = join(part, 'pom.xml')
      const libs = join(part, 'libs')
      await writeFile(pomFile, pomOf(version))
      await maven(['-f', pomFile, copyDependencies, '-DincludeScope=runtime', `-DoutputDirectory=${libs}`])
      return libs
    },
  }
}

/** Returns the folder of Kafka's jars if it exists. An existing folder is always complete. */
export function findJars(): Promise<string | undefined> {
  return findDownload(downloadOf(kafkaVersion))
}

/** Returns the folder of Kafka's jars. If the folder doesn't exist, first downloads the jars with Maven. */
export function ensureJars(report: Report, version = kafkaVersion): Promise<string> {
  return ensureDownload(downloadOf(version), report)
}

function pomOf(version: string): string {
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId>
  <artifactId>development-kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${version}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`
}
