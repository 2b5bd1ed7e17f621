import { createHash } from 'node:crypto'
import { opendir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Fault, faultOf } from '../fault.ts'
import { errorCode, signatureFrom } from './file-signature.ts'

// A folder of small files, as Kubernetes mounts a Secret or a ConfigMap. Kubernetes puts the files into a
// folder of their own for each version, and moves the link `..data` to the newest one. Each name in the
// folder is a link to `..data/NAME`.

/** The link that Kubernetes moves. */
const versionLink = '..data'

export type FolderKind = {
  /** The files of the folder that count. */
  readonly names: RegExp
  /** What the files are, in words. */
  readonly what: string
  /** The setting that names the folder. */
  readonly setting: string
  readonly maxFiles: number
  /** Limit on the bytes of one file. */
  readonly maxBytes: number
  readonly tooLarge: string
  /** Limit on the bytes of all files. */
  readonly maxTotalBytes: number
}

/** A file of a folder. `fault`: why it can't be used, although it could be read. */
export type TextFile = { readonly name: string; readonly text: string; readonly fault?: Fault | undefined }

export type ReadFiles =
  | { readonly ok: true; readonly files: readonly TextFile[]; readonly digest: string }
  /** `isLasting`: true if the files stay unusable until they are edited. */
  | { readonly ok: false; readonly fault: Fault; readonly isLasting: boolean }

/**
 * Returns a text that changes with each edit of a file. If Kubernetes keeps the folder, only its link is
 * read, however many files there are.
 */
export async function folderSignature(folder: string, kind: FolderKind): Promise<string> {
  try {
    const link = await stat(join(folder, versionLink), { bigint: true }).catch(() => undefined)
    if (link !== undefined) return signatureFrom(link)
    const names = await namesIn(folder, kind)
    if (names === undefined) return 'too many'
    const all = names.map(async (name) => {
      const stats = await stat(join(folder, name), { bigint: true })
      return `${name} ${signatureFrom(stats)}`
    })
    return (await Promise.all(all)).join('\n')
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return code
  }
}

/** Reads all files of a folder, as one version of the folder has them. `digest`: of all their texts. */
export async function readFiles(folder: string, kind: FolderKind): Promise<ReadFiles> {
  let path = folder
  try {
    const base = await realpath(join(folder, versionLink)).catch(() => folder)
    const names = await namesIn(base, kind)
    const refuse = (problem: string, advice: string): ReadFiles => ({
      ok: false,
      fault: faultOf(folder, problem, advice),
      isLasting: true,
    })
    const { maxFiles, maxTotalBytes, what } = kind
    if (names === undefined)
      return refuse(
        `has more than ${maxFiles} ${what}, or very many others`,
        'keep fewer, or name another folder',
      )
    const files: TextFile[] = []
    const hash = createHash('sha256')
    let bytes = 0
    for (const name of names) {
      path = join(base, name)
      const file = await fileAt(path, name, kind)
      files.push(file)
      bytes += file.text.length
      if (bytes > maxTotalBytes)
        return refuse(`has ${what} of more than ${maxTotalBytes / 2 ** 20} MiB in all`, 'write less')
      hash.update(JSON.stringify([name, file.text, file.fault?.problem]))
    }
    return { ok: true, files, digest: hash.digest('hex') }
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    const advice =
      code === 'ENOENT' && path === folder
        ? `create it, or name another folder as ${kind.setting}`
        : 'check the file and its permissions'
    return { ok: false, fault: faultOf(path, `cannot be read (${code})`, advice), isLasting: false }
  }
}

async function fileAt(path: string, name: string, { maxBytes, tooLarge }: FolderKind): Promise<TextFile> {
  const refuse = (problem: string, advice: string): TextFile => ({
    name,
    text: '',
    fault: faultOf(path, problem, advice),
  })
  const stats = await stat(path)
  // To read a pipe would never end.
  if (!stats.isFile()) return refuse('is not a file', 'write a file, or give it another name')
  if (stats.size > maxBytes) return refuse(`is larger than ${maxBytes / 1_024} KiB`, tooLarge)
  const bytes = await readFile(path)
  try {
    return { name, text: utf8.decode(bytes) }
  } catch {
    return refuse('is not UTF-8', 'save it as UTF-8')
  }
}

/** A folder with so many times as many entries as it may have files is not looked through. */
const othersForEach = 10
/** How many entries are read at once. */
const entriesAtOnce = 256

/**
 * Returns the names of the files of a folder that count. Returns `undefined` if there are too many. It stops
 * to look there, because a folder that was named by mistake may have millions.
 */
async function namesIn(
  folder: string,
  { names, maxFiles }: FolderKind,
): Promise<readonly string[] | undefined> {
  const found: string[] = []
  let entries = 0
  for await (const { name } of await opendir(folder, { bufferSize: entriesAtOnce })) {
    if (++entries > othersForEach * maxFiles) return undefined
    if (!names.test(name)) continue
    if (found.push(name) > maxFiles) return undefined
  }
  return found.toSorted()
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
