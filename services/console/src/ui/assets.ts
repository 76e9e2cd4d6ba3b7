import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { stylesheet } from './style.ts';

/** A file that browsers load. Its URL changes with its content. */
export interface Asset {
  readonly url: string;
  readonly type: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

const require = createRequire(import.meta.url);
const browserFolder = join(import.meta.dirname, '../browser');
const javascript = 'text/javascript; charset=utf-8';
const css = 'text/css; charset=utf-8';

interface Source {
  readonly name: string;
  /** Where it is in every page. */
  readonly place?: 'style' | 'script' | 'module';
  readonly type: string;
  read(): Promise<string>;
}

/** Scripts of packages come first: our modules use them. */
const sources: readonly Source[] = [
  { name: 'icon.svg', type: 'image/svg+xml', read: async () => icon },
  fromPackage('uplot.css', 'style', { type: css, path: 'uplot/dist/uPlot.min.css' }),
  { name: 'console.css', place: 'style', type: css, read: async () => stylesheet },
  fromPackage('htmx.js', 'script', { type: javascript, path: 'htmx.org/dist/htmx.min.js' }),
  fromPackage('uplot.js', 'script', { type: javascript, path: 'uplot/dist/uPlot.iife.min.js' }),
  fromBrowserFolder('live'),
  fromBrowserFolder('chart'),
  fromBrowserFolder('keyboard'),
  fromBrowserFolder('copy'),
];

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1d4ed8"/><path d="M4 12V6m8 6V6M3 8l10-3" stroke="#fff" stroke-width="1.6" fill="none"/></svg>`;

function fromPackage(
  name: string,
  place: 'style' | 'script',
  { type, path }: { readonly type: string; readonly path: string },
): Source {
  return { name, place, type, read: () => readFile(require.resolve(path), 'utf8') };
}

/** Types are stripped at the start: there is no build. In an image, they were stripped before. */
function fromBrowserFolder(name: string): Source {
  const read = async () => {
    const path = await realpath(join(browserFolder, `${name}.ts`));
    const text = await readFile(path, 'utf8');
    return path.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
  };
  return { name: `${name}.js`, place: 'module', type: javascript, read };
}

/** All files that browsers load, from our own origin. */
export class Assets {
  readonly #byName: ReadonlyMap<string, Asset>;
  readonly styles: readonly string[];
  readonly scripts: readonly string[];
  readonly modules: readonly string[];

  private constructor(byName: ReadonlyMap<string, Asset>) {
    this.#byName = byName;
    const placed = (place: Source['place']) =>
      sources.filter((source) => source.place === place).map(({ name }) => this.url(name));
    this.styles = placed('style');
    this.scripts = placed('script');
    this.modules = placed('module');
  }

  static async load(): Promise<Assets> {
    const assets = sources.map(async (source) => [source.name, await load(source)] as const);
    return new Assets(new Map(await Promise.all(assets)));
  }

  all(): readonly Asset[] {
    return [...this.#byName.values()];
  }

  url(name: string): string {
    const asset = this.#byName.get(name);
    if (asset === undefined) throw new TypeError(`there is no asset ${name}`);
    return asset.url;
  }
}

async function load({ name, type, read }: Source): Promise<Asset> {
  const body = Buffer.from(await read());
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { url: `/assets/${hash}/${name}`, type, body, gzipped: gzipSync(body) };
}
