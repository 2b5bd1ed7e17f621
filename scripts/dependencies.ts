import type { Lock, LockedPackage, Manifest } from './project-files.ts'

/** What is checked of the packages that this project depends on, from its lock file alone. */
type Dependencies = Lock &
  Required<Pick<Manifest, 'allowScripts'>> & {
    /** Licences that were read in the package itself, since its manifest names none. By name and version: `a@1.0.0`. */
    readonly readLicences?: Readonly<Record<string, string>>
  }

/** Anyone may use, change and pass on what is under these, and need only name its authors. */
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
 * Packages whose manifest names no licence, while a file in them does. The next version has to be looked at again.
 */
export const readLicences: Readonly<Record<string, string>> = {
  // Its LICENSE: MIT, copyright 2019 Erik Engervall.
  '@kafkajs/confluent-schema-registry@4.1.0': 'MIT',
}

/**
 * What is wrong, one line each: a package that we ship under a licence that isn't allowed, one without a digest, one with
 * an install script that nobody has decided on, and decisions on scripts and licences that don't exist.
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

/** What the manifest says counts; what was read stands in where it says nothing. */
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

/** Of several licences to choose from one must be allowed, of several that hold together all. */
function isAllowed(expression: string): boolean {
  const plain = expression.replace(/^\((.*)\)$/, '$1')
  return plain
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((licence) => allowedLicences.has(licence)))
}
