import type { Lock, LockedPackage, Manifest } from './project-files.ts'

/**
 * The facts about this project's dependencies that are checked. All of them except the read licences are in
 * the project's files.
 */
type Dependencies = Lock &
  Required<Pick<Manifest, 'allowScripts'>> & {
    /**
     * Licences that a person has read in the package, because its manifest names none. The keys are names
     * with versions, such as `a@1.0.0`.
     */
    readonly readLicences?: Readonly<Record<string, string>>
  }

/**
 * The allowed licences. Under each of them, anyone may use, change and pass on the software, and only has to
 * name its authors.
 */
const allowedLicences: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
])

/**
 * Licences of packages whose manifest names none. Another file of the package names the licence. Each entry
 * is for one version, so a person has to look at the next version again.
 */
export const readLicences: Readonly<Record<string, string>> = {
  // The package's LICENSE says: MIT, copyright 2019 Erik Engervall.
  '@kafkajs/confluent-schema-registry@4.1.0': 'MIT',
}

/**
 * Returns the faults of the dependencies, one line each. Faults are a shipped package whose licence isn't
 * allowed, a package without a SHA-512 digest, a package with an install script that `allowScripts` doesn't
 * name, and entries of `allowScripts` and `readLicences` that no package needs.
 */
export function dependencyFaults({
  packages,
  allowScripts,
  readLicences: read = {},
}: Dependencies): readonly string[] {
  const locked = Object.entries(packages).filter(([path]) => path !== '')
  const withScripts = new Set(
    locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path)),
  )
  const unnamed = new Set(
    locked.filter(([, { license }]) => license === undefined).map(([path, entry]) => spelled(path, entry)),
  )
  return [
    ...locked.flatMap(([path, entry]) => faultsOf(path, withLicence(path, entry, read), allowScripts)),
    ...Object.keys(allowScripts)
      .filter((name) => !withScripts.has(name))
      .map((name) => `allowScripts names ${name}, which has no install script: remove it`),
    ...Object.keys(read)
      .filter((name) => !unnamed.has(name))
      .map((name) => `readLicences names ${name}, which is not needed: remove it`),
  ]
}

/**
 * Returns the lock file's entry with a licence: the manifest's, or otherwise the licence that a person has
 * read.
 */
export function withLicence(
  path: string,
  entry: LockedPackage,
  read: Readonly<Record<string, string>> = readLicences,
): LockedPackage {
  const license = entry.license ?? read[spelled(path, entry)]
  return license === undefined ? entry : { ...entry, license }
}

function spelled(path: string, { version = '' }: LockedPackage): string {
  return `${nameOf(path)}@${version}`
}

function faultsOf(
  path: string,
  { version = '', license, integrity, dev = false, hasInstallScript = false }: LockedPackage,
  allowScripts: Dependencies['allowScripts'],
): readonly string[] {
  const name = nameOf(path)
  const faults: string[] = []
  if (!dev && (license === undefined || !isAllowed(license)))
    faults.push(
      `${name} ${version} is under ${license ?? 'no licence'}, which is not on the list of scripts/dependencies.ts`,
    )
  if (integrity === undefined || !integrity.startsWith('sha512-'))
    faults.push(`${name} ${version} has no SHA-512 in the lock file: it is not from a registry`)
  if (hasInstallScript && !Object.hasOwn(allowScripts, name))
    faults.push(
      `${name} ${version} runs a script when it is installed: set it to true or false in allowScripts of package.json`,
    )
  return faults
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/**
 * Returns true if the licence expression is allowed. With `OR`, one of the licences must be allowed. With
 * `AND`, all of them must be.
 */
function isAllowed(expression: string): boolean {
  const plain = expression.replace(/^\((.*)\)$/, '$1')
  return plain
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((licence) => allowedLicences.has(licence)))
}
