import { join, resolve } from 'node:path'
import { dependencyFaults, readLicences } from './dependencies.ts'
import { readLock, readManifest } from './project-files.ts'

/** `npm run check:dependencies`: fails with every fault of the lock file, in this project or in the folder that is named. */
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))

const { packages } = readLock(folder)
const { allowScripts = {} } = readManifest(folder)
const count = Object.keys(packages).length - 1
// They are of this project's packages.
const isOurs = process.argv[2] === undefined
const faults = dependencyFaults({ packages, allowScripts, ...(isOurs && { readLicences }) })

for (const fault of faults) console.log(fault)
// A check that saw nothing has checked nothing.
if (count < 1) console.log('the lock file names no package')
if (faults.length > 0 || count < 1) process.exitCode = 1
