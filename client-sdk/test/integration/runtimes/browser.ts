import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { json } from 'node:stream/consumers';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startServerProcess } from '@tollgate/testkit/processes';
import type { Report } from './run-steps.ts';

/** Reports of a page and its worker, and all output of the browser. */
export interface BrowserOutcome {
  readonly page: Report;
  readonly worker: Report;
  readonly printed: string;
}

/** A cold Chromium on a machine with more to do than it has cores. */
const readyTimeoutMs = 60_000;

/**
 * Opens the project's `page.html` in Chromium without a window, until page and worker have posted
 * their reports.
 */
export async function runInBrowser(chromium: string, folder: string): Promise<BrowserOutcome> {
  const reports = new Map<string, Report>();
  const server = serveProject(folder, (who, report) => reports.set(who, report));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // A TCP server's address is never a string.
  const { port } = server.address() as AddressInfo;
  const profile = temporaryFolder();
  try {
    const browser = await startServerProcess({
      command: chromium,
      args: [...flags, `--user-data-dir=${profile.path}`, `http://127.0.0.1:${port}/page.html`],
      ready: async () => {
        if (reports.size < 2) throw new Error(`reports so far: ${[...reports.keys()].join() || 'none'}`);
      },
      readyTimeoutMs,
    });
    await browser.kill();
    const { page = {}, worker = {} } = Object.fromEntries(reports);
    return { page, worker, printed: browser.logs() };
  } finally {
    server.close();
    server.closeAllConnections();
    profile.remove();
  }
}

const flags = [
  '--headless',
  // Its sandbox does not work for root or in containers; all that it opens is ours.
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
  // The page's console.
  '--enable-logging=stderr',
];

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
};

function serveProject(folder: string, onReport: (who: string, report: Report) => void): Server {
  return createServer(async (request, response) => {
    const path = request.url ?? '/';
    const who = /^\/report\/(page|worker)$/.exec(path)?.[1];
    const type = types[extname(path)];
    if (who !== undefined) {
      // Our own program has posted it.
      onReport(who, (await json(request)) as Report);
      response.end();
    } else if (type === undefined) {
      response.writeHead(404).end();
    } else {
      response
        .writeHead(200, { 'content-type': `${type}; charset=utf-8` })
        .end(await readFile(join(folder, path)));
    }
  });
}
