// Writes into the store of a folder, and stops before the new version is linked.
//
//   node stopping-process.ts <folder> <key>
import { promises } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

promises.link = () => new Promise<void>(() => setInterval(() => undefined, 1000));
syncBuiltinESMExports();
const { fileTokenStore } = await import('../../src/node.ts');
const [folder = '', key = ''] = process.argv.slice(2);
const store = fileTokenStore({ folder });
await store.set(key, { token: { access_token: 'lost' } }, (await store.get(key))?.version);
