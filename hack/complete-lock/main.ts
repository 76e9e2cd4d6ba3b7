// Run after `npm install` when `npm ci` says that packages are missing from the lock file: npm leaves out the binaries
// for other platforms when the registry at hand does not carry them, and then refuses its own lock file. This adds them.
import { readFile, writeFile } from 'node:fs/promises';
import { type LockFile, missingPackages, platformEntry } from './missing-platforms.ts';

const file = 'package-lock.json';
// npm wrote it; its version 3 has this shape.
const lock = JSON.parse(await readFile(file, 'utf8')) as LockFile;
const missing = missingPackages(lock);
for (const wanted of missing) lock.packages[`node_modules/${wanted.name}`] = platformEntry(wanted);
const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
await writeFile(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
process.stdout.write(`${file}: ${missing.length} packages added\n`);
