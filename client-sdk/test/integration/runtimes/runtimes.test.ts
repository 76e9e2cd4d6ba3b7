import { readFileSync } from 'node:fs';
import { findBinary } from '@tollgate/testkit/processes';
import t, { type Test } from 'tap';
import manifest from '../../../package.json' with { type: 'json' };
import { run } from '../package/pack-package.ts';
import { runInBrowser } from './browser.ts';
import type { Report } from './run-steps.ts';
import { makeRuntimeProject, reportMark } from './runtime-project.ts';
import { startSite } from './site.ts';

const site = await startSite();
t.teardown(site.close);
const project = await makeRuntimeProject(site.inputs);
t.teardown(project.remove);

/** Results of the steps where all of them work. */
const web: Report = {
  'a token by client credentials calls an API': ['client', 200, true],
  'bodies of every kind arrive': { text: true, bytes: true, blob: true, form: true, request: true },
  'a code with PKCE becomes a token, its id_token validated': {
    challengeMethod: 'S256',
    subject: 'user',
    isValidated: true,
    isRefreshed: true,
    isActive: true,
  },
  'the code challenge is that of RFC 7636, appendix B': 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  'an id_token with another nonce is refused': 'IdTokenError',
  'assertions are signed with keys in every form': ['Bearer', 'Bearer', 'Bearer'],
  'a DPoP proof with the nonce of the API is accepted there': [200, true],
  'every kind of key signs': { ES256: 3, ES384: 3, ES512: 3, PS256: 3, EdDSA: 3 },
  'many calls without a token cause one token request': [1, [200]],
  'failures have their kind': {
    wrongSecret: 'TokenResponseError',
    timeout: 'TimeoutError',
    aborted: 'AbortError',
    unreachable: 'ConnectionError',
  },
  'a request that did not reach a server is repeated': 1,
  'a redirect to another origin is followed without credentials': 'nothing secret arrived',
  'an authorization server runs inside': 'user',
  'nothing secret is printed': 'nothing secret in JSON',
};

/** Further steps with the modules of Node. */
const node: Report = {
  'a client certificate proves who asks': 'client',
  'a token in files outlives its manager': { statuses: [200, 200], tokenRequests: 1 },
  'the service-account token is read from its file': 'the.token.itself',
};

/** Nothing that these say of a failed connection proves that no byte got through. */
const cannotTell = { 'a request that did not reach a server is repeated': 0 };

/** Browsers hide where a redirect leads. */
const hidesRedirects = {
  'a redirect to another origin is followed without credentials':
    'RedirectError: browsers do not expose the target of a redirect; call the final URL',
};

/** The oldest that the package is for. */
const oldestNode = `node-${manifest.engines.node.replace('>=', '')}.0`;

runtime(t, 'the oldest Node, ES modules', [oldestNode], async (t, binary) => {
  await reports(t, [binary, 'main.mjs'], { ...web, ...node });
});

runtime(t, 'the oldest Node, require()', [oldestNode], async (t, binary) => {
  await reports(t, [binary, 'main.cjs'], { ...web, ...node });
});

t.test('this Node', async (t) => {
  await reports(t, [process.execPath, 'main.mjs'], { ...web, ...node });
});

runtime(t, 'Deno, allowed nothing but the network', ['deno'], async (t, binary) => {
  await reports(t, [...denoCommand(binary, 'run'), '--allow-net', 'main.mjs', 'web'], web);
});

runtime(t, 'Deno', ['deno'], async (t, binary) => {
  await reports(t, [...denoCommand(binary, 'run'), '--allow-all', 'main.mjs'], { ...web, ...node });
});

runtime(t, 'Deno checks the types', ['deno'], async (t, binary) => {
  const [command = '', ...args] = denoCommand(binary, 'check');
  await t.resolves(run(command, [...args, 'typed.ts'], project.folder));
});

runtime(t, 'Bun', ['bun'], async (t, binary) => {
  await reports(t, [binary, 'main.mjs'], { ...web, ...node });
});

runtime(t, 'workerd', ['workerd'], async (t, binary) => {
  await reports(t, [binary, 'test', 'workerd.capnp'], { ...web, ...cannotTell });
});

t.test('the README names the versions that ran here', (t) => {
  const readText = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const readme = readText('../../../README.md');
  const versions = readText('../../../../hack/setup.sh').matchAll(
    /^(oldest_node|deno|bun|workerd)_version=(.+)$/gm,
  );
  const installed = Object.fromEntries(Array.from(versions, ([, name, version]) => [name, version]));
  t.equal(`node-${installed.oldest_node}`, oldestNode);
  for (const [runtime, name] of Object.entries({
    Node: 'oldest_node',
    Deno: 'deno',
    Bun: 'bun',
    workerd: 'workerd',
  })) {
    const row = readme.split('\n').find((line) => line.startsWith(`| ${runtime} `));
    t.match(row, new RegExp(`\\| ${installed[name]}[ ,]`), runtime);
  }
  t.match(readme, `| 22.12.0, ${process.versions.node} `);
  t.end();
});

const chromiums = ['chromium-headless-shell', 'chromium', 'google-chrome', 'chromium-browser'];
runtime(t, 'Chromium, a page and its worker', chromiums, async (t, binary) => {
  const { page, worker, printed } = await runInBrowser(binary, project.folder);
  const expected = { ...web, ...cannotTell, ...hidesRedirects };
  t.same(page, expected);
  t.same(worker, expected);
  assertNoSecrets(t, printed);
});

/** A test in a runtime that may not be here: a person may go without, CI may not. */
function runtime(
  t: Test,
  name: string,
  binaries: readonly string[],
  body: (t: Test, binary: string) => Promise<void>,
): void {
  const found = findFirst(binaries);
  if (found instanceof Error && process.env.CI === 'true') throw found;
  const skip = found instanceof Error ? `left out: ${found.message}` : false;
  t.test(name, { skip }, async (t) => {
    await body(t, String(found));
  });
}

function findFirst(names: readonly string[]): string | Error {
  const failures: unknown[] = [];
  for (const name of names) {
    try {
      return findBinary(name);
    } catch (error) {
      failures.push(error);
    }
  }
  return new Error(`${names[0]} is not installed: run hack/setup.sh test`, { cause: failures[0] });
}

/** Deno's cache is in the project, and it does not prompt. */
function denoCommand(binary: string, command: 'run' | 'check'): string[] {
  const env = [`DENO_DIR=${project.folder}/.deno`, 'DENO_NO_UPDATE_CHECK=1', 'DENO_NO_PROMPT=1'];
  return ['env', ...env, binary, command];
}

async function reports(t: Test, [command = '', ...args]: string[], expected: Report): Promise<void> {
  const { stdout, stderr } = await run(command, args, project.folder);
  const printed = `${stdout}${stderr}`;
  const report = printed.split('\n').find((line) => line.startsWith(reportMark));
  if (report === undefined) throw new Error(`${command} printed no report:\n${printed}`);
  t.same(JSON.parse(report.slice(reportMark.length)), expected);
  assertNoSecrets(t, printed);
}

/** The last step has printed a client, a token and an error. */
function assertNoSecrets(t: Test, printed: string): void {
  t.match(printed, /printed:/);
  t.notMatch(printed, /S3CR3T/);
}
