import type { Lock, LockedPackage, Manifest } from './project-files.ts'

/** What is checked of the packages that this project depends on, from its lock file alone. */
type Dependencies = Lock & Required<Pick<Manifest, 'allowScripts'>>

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
 * What is wrong, one line each: a package that we ship under a licence that isn't allowed, one without a digest, one with
 * an install script that nobody has decided on, and decisions on scripts that don't exist.
 */
export function dependencyFaults({ packages, allowScripts }: Dependencies): readonly string[] {
  const locked = Object.entries(packages).filter(([path]) => path !== '')
  const withScripts = new Set(
    locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path)),
  )
  return [
    ...locked.flatMap(([path, entry]) => faultsOf(path, entry, allowScripts)),
    ...Object.keys(allowScripts)
      .filter((name) => !withScripts.has(name))
      .map((name) => `allowScripts names ${name}, which has no install script: remove it`),
  ]
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
