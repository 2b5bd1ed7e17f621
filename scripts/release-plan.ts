/** The plan of a release, and the faults that prevent the release. The functions here are pure. */

/** The texts of the files that name the version, by their paths relative to the root. */
export type VersionFiles = Readonly<Record<(typeof versionFiles)[number], string>>

export const versionFiles = [
  'package.json',
  'package-lock.json',
  'deploy/helm/sluice/Chart.yaml',
  'CHANGELOG.md',
] as const

export type ReleaseState = {
  readonly files: VersionFiles
  /** The output of `git status --porcelain`. */
  readonly status: string
  /** The commit that is released, 40 hex digits. */
  readonly head: string
  /** The commit that the tag of this version names. `undefined` if there is no such tag. */
  readonly tagged: string | undefined
  /**
   * The tag that must exist already, as in a workflow that the tag has started. `undefined`: the tag of this
   * version must not exist yet.
   */
  readonly expectedTag: string | undefined
}

export type ReleasePlan = {
  readonly version: string
  readonly tag: string
  /** The section of the changelog, without its heading. */
  readonly notes: string
  /** The faults that prevent the release, each with what to do. Without faults, the release can be made. */
  readonly faults: readonly string[]
}

/** Matches a version that both npm and helm accept, such as `1.2.3` or `1.2.3-rc.1`. */
const version = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/

export function isVersion(text: string): boolean {
  return version.test(text)
}

export function planRelease({ files, status, head, tagged, expectedTag }: ReleaseState): ReleasePlan {
  const named = namedVersions(files)
  const own = named['package.json'] ?? ''
  const tag = `v${own}`
  const sections = sectionsOf(files['CHANGELOG.md'])
  const notes = sections.get(own)
  const faults: string[] = []
  if (!isVersion(own)) faults.push(`package.json: ${own} is no version such as 1.2.3`)
  for (const [where, other] of Object.entries(named)) {
    if (other !== own)
      faults.push(`${where} says ${other}, package.json ${own}: run npm run release -- --prepare ${own}`)
  }
  if (status !== '') faults.push(`the tree has changes: commit or remove them\n${status.trimEnd()}`)
  if (notes === undefined)
    faults.push(`CHANGELOG.md has no section "## ${own} - DATE": run npm run release -- --prepare ${own}`)
  else if (!hasEntries(notes))
    faults.push(`CHANGELOG.md: the section of ${own} is empty: say what has changed`)
  if (hasEntries(sections.get(unreleased) ?? ''))
    faults.push('CHANGELOG.md: Unreleased has entries: move them into the section of the version')
  faults.push(...tagFaults({ tag, head, tagged, expectedTag }))
  return { version: own, tag, notes: notes ?? '', faults }
}

function tagFaults({
  tag,
  head,
  tagged,
  expectedTag,
}: { tag: string } & Pick<ReleaseState, 'head' | 'tagged' | 'expectedTag'>): readonly string[] {
  if (expectedTag === undefined)
    return tagged === undefined ? [] : [`the tag ${tag} exists: raise the version`]
  if (expectedTag !== tag) return [`the tag is ${expectedTag}, and the version asks for ${tag}`]
  if (tagged === undefined) return [`there is no tag ${tag}`]
  return tagged === head ? [] : [`the tag ${tag} is not on ${head}, which is checked out`]
}

function namedVersions(files: VersionFiles): Readonly<Record<string, string>> {
  const chart = files['deploy/helm/sluice/Chart.yaml']
  const lock: Lock = JSON.parse(files['package-lock.json'])
  const manifest: { version: string } = JSON.parse(files['package.json'])
  return {
    'package.json': manifest.version,
    'package-lock.json': lock.version,
    'package-lock.json (its first package)': lock.packages[''].version,
    'Chart.yaml (version)': /^version: (.*)$/m.exec(chart)?.[1] ?? 'nothing',
    'Chart.yaml (appVersion)': /^appVersion: (.*)$/m.exec(chart)?.[1] ?? 'nothing',
  }
}

type Lock = { version: string; packages: { '': { version: string } } }

const unreleased = 'Unreleased'

/** Returns the sections of a changelog by the version in their headings. */
function sectionsOf(changelog: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>()
  for (const part of changelog.split(/^## /m).slice(1)) {
    const [heading = '', ...lines] = part.split('\n')
    const [name = ''] = heading.split(' - ')
    sections.set(name.trim(), `${lines.join('\n').trim()}\n`)
  }
  return sections
}

/** Returns true if a section has a line that is neither empty nor a heading. */
function hasEntries(section: string): boolean {
  return section.split('\n').some((line) => line.trim() !== '' && !line.startsWith('#'))
}

/**
 * Returns the files as a release of the version `next` needs them. All files name this version. In the
 * changelog, the unreleased entries become the section of this version, unless it already has a section.
 * `date` is YYYY-MM-DD.
 */
export function prepareFiles(files: VersionFiles, next: string, date: string): VersionFiles {
  const chart = files['deploy/helm/sluice/Chart.yaml']
  const changelog = files['CHANGELOG.md']
  const heading = `## ${unreleased}\n\n## ${next} - ${date}\n`
  return {
    'package.json': files['package.json'].replace(/^( {2}"version": )".*"/m, `$1"${next}"`),
    // The lock file has the project's version twice: at its top, and in the entry of the project.
    'package-lock.json': files['package-lock.json']
      .replace(/^( {2}"version": )".*"/m, `$1"${next}"`)
      .replace(/^( {6}"version": )".*"/m, `$1"${next}"`),
    'deploy/helm/sluice/Chart.yaml': chart
      .replace(/^version: .*$/m, `version: ${next}`)
      .replace(/^appVersion: .*$/m, `appVersion: ${next}`),
    'CHANGELOG.md': sectionsOf(changelog).has(next)
      ? changelog
      : changelog.replace(`## ${unreleased}\n`, heading),
  }
}

export type Artifact = { readonly name: string; readonly sha256: string }

export type Build = {
  readonly artifacts: readonly Artifact[]
  readonly version: string
  readonly commit: string
  /** The URL of the repository, without a login. Empty if the repository has no remote with an https URL. */
  readonly repository: string
  /** The builder's id: the URL of a workflow's run, or a URN for a person's machine. */
  readonly builder: string
  readonly tools: Readonly<Record<string, string>>
  /** The SHA-256 of package-lock.json, which names all packages that the build used. */
  readonly lockSha256: string
}

/**
 * Returns an in-toto statement (v1) with SLSA's provenance (v1). It says from which commit and lock file, and
 * with which tools, the artifacts were built. The statement isn't signed.
 */
export function provenanceOf(build: Build): object {
  const { artifacts, version: own, commit, repository, builder, tools, lockSha256 } = build
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artifacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${repository === '' ? 'urn:sluice' : repository}/blob/v${own}/docs/releasing.md`,
        externalParameters: { version: own },
        internalParameters: tools,
        resolvedDependencies: [
          {
            uri: repository === '' ? 'urn:sluice' : `git+${repository}@refs/tags/v${own}`,
            digest: { gitCommit: commit },
          },
          { uri: 'package-lock.json', digest: { sha256: lockSha256 } },
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  }
}
