// npm runs this after it packed: the repository's package.json takes its place again.
import { existsSync, renameSync } from 'node:fs';

const kept = new URL('../package.repository.json', import.meta.url);
if (existsSync(kept)) renameSync(kept, new URL('../package.json', import.meta.url));
