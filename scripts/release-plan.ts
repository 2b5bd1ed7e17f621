/** What a release is made of, and what keeps it from being made. Pure. */

/** Texts of the files that name the version, by their paths from the root. */
export type VersionFiles = Readonly<Record<(typeof versionFiles)[number], string>>

export const versionFiles = [
  'package.json',
  'package-lock.json',
  'deploy/helm/sluice/Chart.yaml',
  'CHANGELOG.md',
] as const

export type ReleaseState = {
  readonly files: VersionFiles
  /** What `git status --porcelain` prints. */
  readonly status: string
  /** The commit that is released, 40 hex digits. */
  readonly head: string
  /** The commit that the tag of this version names; `undefined` where there is no such tag. */
  readonly tagged: string | undefined
  /** The tag has to be there already, as in a workflow that it has started; absent: it must not be. */
  readonly expectedTag: string | undefined
}

export type ReleasePlan = {
  readonly version: string
  readonly tag: string
  /** The section of the changelog, without its heading. */
  readonly notes: string
  /** Each says what to do. None: it can be released. */
  readonly faults: readonly string[]
}

/** `1.2.3`, `1.2.3-rc.1`: what npm and helm both take. */
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

/** The sections of a changelog by the version in their headings. */
function sectionsOf(changelog: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>()
  for (const part of changelog.split(/^## /m).slice(1)) {
    const [heading = '', ...lines] = part.split('\n')
    const [name = ''] = heading.split(' - ')
    sections.set(name.trim(), `${lines.join('\n').trim()}\n`)
  }
  return sections
}

/** Headings alone are none. */
function hasEntries(section: string): boolean {
  return section.split('\n').some((line) => line.trim() !== '' && !line.startsWith('#'))
}

/**
 * The files as a release of `next` needs them: its version everywhere, and what was unreleased in a section of its own, unless it has
 * one. `date`: YYYY-MM-DD.
 */
export function prepareFiles(files: VersionFiles, next: string, date: string): VersionFiles {
  const chart = files['deploy/helm/sluice/Chart.yaml']
  const changelog = files['CHANGELOG.md']
  const heading = `## ${unreleased}\n\n## ${next} - ${date}\n`
  return {
    'package.json': files['package.json'].replace(/^( {2}"version": )".*"/m, `$1"${next}"`),
    // Its own version, and that of its first package, the project.
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

/** A file of a release. */
export type Artifact = { readonly name: string; readonly sha256: string }

export type Build = {
  readonly artifacts: readonly Artifact[]
  readonly version: string
  readonly commit: string
  /** Of the repository, without a login; empty where it has no remote. */
  readonly repository: string
  /** What builds: a workflow's name and run, or a person's machine. */
  readonly builder: string
  readonly tools: Readonly<Record<string, string>>
  /** Digest of package-lock.json, which names all that went into it. */
  readonly lockSha256: string
}

/** An in-toto statement (v1) with SLSA's provenance (v1): which commit, lock file and tools made these files. Unsigned. */
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
