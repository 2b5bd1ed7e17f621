/**
 * The names under which a release is published. All of them come from one variable, `RELEASE_OWNER`. The functions
 * here are pure.
 */

export type ReleaseNames = {
  /** The package at npm, such as `@acme/sluice`. `undefined` without an owner. */
  readonly package: string | undefined
  /** The https URL of the repository, without a login. Empty if it isn't known. */
  readonly repository: string
  /** The image without its tag, such as `registry.example.com/acme/sluice`. `undefined` without an owner or a registry. */
  readonly image: string | undefined
  /** The folder of the chart, such as `oci://registry.example.com/acme/charts`. `undefined` as for the image. */
  readonly charts: string | undefined
}

export type Publisher = {
  /** Who publishes, such as `acme`. Empty: nobody does, and all names stay as they are in the repository. */
  readonly owner: string
  /** The registry of the image and of the chart, as `HOST` or `HOST:PORT`. Empty: there is none. */
  readonly registry: string
  /** The URL of the repository's remote, as git has it. Empty: it has none. */
  readonly origin: string
}

/** Returns what is wrong with the names that somebody chose, each with what to do. */
export function publisherFaults({ owner, registry }: Publisher): readonly string[] {
  const faults: string[] = []
  if (owner !== '' && !/^[a-z\d]+(-[a-z\d]+)*$/i.test(owner))
    faults.push(`RELEASE_OWNER is ${owner}: expected letters, digits and single hyphens, such as acme`)
  if (registry !== '' && !/^[a-z\d.-]+(:\d+)?$/i.test(registry))
    faults.push(
      `RELEASE_REGISTRY is ${registry}: expected HOST or HOST:PORT, without https:// and without a path`,
    )
  return faults
}

export function namesOf({ owner, registry, origin }: Publisher): ReleaseNames {
  const found = repositoryUrl(origin)
  if (owner === '') return { package: undefined, repository: found, image: undefined, charts: undefined }
  // npm and registries of images know no capitals.
  const scope = owner.toLowerCase()
  const place = registry === '' ? undefined : `${registry.toLowerCase()}/${scope}`
  return {
    package: `@${scope}/sluice`,
    repository: found === '' ? '' : ownedBy(owner, found),
    image: place && `${place}/sluice`,
    charts: place && `oci://${place}/charts`,
  }
}

/** Returns a remote's https URL without a login. Returns an empty text if there is no such URL. */
function repositoryUrl(origin: string): string {
  const url = URL.parse(origin.replace(/^git@([^:]+):/, 'https://$1/'))
  return url?.protocol === 'https:' ? `${url.origin}${url.pathname.replace(/\.git$/, '')}` : ''
}

/** Returns the URL of the owner's repository of the same name. The remote may be that of a fork. */
function ownedBy(owner: string, repository: string): string {
  const { origin, pathname } = new URL(repository)
  return `${origin}/${owner}/${pathname.split('/').at(-1)}`
}

/** Returns `package.json` as it is published. Without an owner it stays private, and npm publishes it nowhere. */
export function namedManifest(manifest: string, { package: name, repository }: ReleaseNames): string {
  if (name === undefined) return manifest
  const { private: _private, ...rest }: Record<string, unknown> = JSON.parse(manifest)
  const links =
    repository === ''
      ? {}
      : {
          // Errors and help lead to pages below this URL.
          homepage: repository,
          repository: { type: 'git', url: `git+${repository}.git` },
          bugs: `${repository}/issues`,
        }
  return `${JSON.stringify({ ...rest, name, ...links }, null, 2)}\n`
}

/** Returns `Chart.yaml` with the repository's URL, if it is known. */
export function namedChart(chart: string, { repository }: ReleaseNames): string {
  return repository === '' ? chart : `${chart.trimEnd()}\nhome: ${repository}\nsources: [${repository}]\n`
}

/**
 * Returns the chart's values with the image, and with the address of the runbooks of the version `own`. A value whose
 * name isn't known stays as it is.
 */
export function namedValues(values: string, { image = '', repository }: ReleaseNames, own: string): string {
  const runbooks = repository === '' ? '' : `${repository}/blob/v${own}/deploy/runbooks`
  return [
    ['  repository: ', image],
    ['    runbookBaseUrl: ', runbooks],
  ].reduce((text, [key = '', value = '']) => {
    const [before, after] = text.split(`\n${key}''\n`)
    if (after === undefined) throw new Error(`values.yaml has no empty ${key.trim().slice(0, -1)}`)
    return value === '' ? text : `${before}\n${key}${value}\n${after}`
  }, values)
}
