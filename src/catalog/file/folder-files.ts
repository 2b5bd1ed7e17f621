import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
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
    const all = names.slice(0, kind.maxFiles).map(async (name) => {
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
    if (names.length > kind.maxFiles) {
      const fault = faultOf(folder, `has more than ${kind.maxFiles} ${kind.what}`, 'keep fewer')
      return { ok: false, fault, isLasting: true }
    }
    const files: TextFile[] = []
    const hash = createHash('sha256')
    for (const name of names) {
      path = join(base, name)
      const file = await fileAt(path, name, kind)
      files.push(file)
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
  if ((await stat(path)).size > maxBytes) return refuse(`is larger than ${maxBytes / 1_024} KiB`, tooLarge)
  const bytes = await readFile(path)
  try {
    return { name, text: utf8.decode(bytes) }
  } catch {
    return refuse('is not UTF-8', 'save it as UTF-8')
  }
}

async function namesIn(folder: string, { names }: FolderKind): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => names.test(name)).toSorted()
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
