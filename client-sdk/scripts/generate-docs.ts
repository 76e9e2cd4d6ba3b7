// `npm run docs`: writes docs/api out of the docstrings, one page for every subpath. A folder may be named instead.
import { fileURLToPath } from 'node:url';
import { renderApiDocs } from './render-api-docs.ts';

await renderApiDocs(process.argv[2] ?? fileURLToPath(new URL('../docs/api', import.meta.url)));
