import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { documentSteps, isAsShown, startDocumentShell } from './support/document-shell.ts';

const checkout = resolve(import.meta.dirname, '../..');
const tutorial = join(checkout, 'docs/tutorial');

/** Default ports of the commands, by variable. */
const defaultPorts = {
  PORT: 8080,
  GRPC_PORT: 8081,
  DEBUG_PORT: 6070,
  XDS_GRPC_PORT: 18_000,
  XDS_ADMIN_PORT: 8090,
  SVC_EXT_AUTHZ_GRPC_PORT: 9001,
  SVC_EXT_AUTHZ_HTTP_PORT: 9003,
};
/** Ports of the tutorial. */
const namedPorts = [9000, 9002, 9901, 10_000];

/** These ports may be taken on a test machine, so others replace them. */
async function movePorts() {
  const moved = new Map<string, string>();
  for (const port of [...Object.values(defaultPorts), ...namedPorts])
    moved.set(String(port), String(await freePort()));
  const move = (text: string): string =>
    text.replaceAll(/(?<=localhost:|PORT=|listen\(|port_value: )\d+/g, (port) => moved.get(port) ?? port);
  const env = Object.fromEntries(
    Object.entries(defaultPorts).map(([variable, port]) => [variable, moved.get(String(port))]),
  );
  return {
    move,
    env: { ...env, CONFIG_GRPC_XDS_SERVER_URL: `localhost:${env.XDS_GRPC_PORT}` },
  };
}

/**
 * A reader's machine is quick, and an hour ends while few read on; tests share a machine, and run
 * at any time.
 */
const inPeace = (text: string): string =>
  text
    // The checkout is set up, and other tests use it.
    .replaceAll(/^(make setup|sh hack\/setup\.sh demo).*\n/gm, '')
    .replaceAll(/(?<= timeout: )[\d.]+s/g, '20s')
    .replaceAll('unit: Hour', 'unit: Year')
    .replaceAll('unit: hour', 'unit: year')
    .replaceAll('per hour', 'per year');

t.test('differences from the shown output are noticed', async (t) => {
  t.ok(isAsShown('a\n{…}\n', 'a\n{"b":1}\n'));
  for (const output of ['a\n{', 'b\n{}', 'a\n{}\nc', '']) t.notOk(isAsShown('a\n{…}', output), output);
  t.notOk(isAsShown('429', '4299'));
  const page = 'prose\n```sh\nls\n```\nmore\n```text\na\n```\n```yaml\nb: c\n```\n```sh\npwd\n```\n';
  t.strictSame(documentSteps(page), [
    { line: 3, script: 'ls', shown: 'a' },
    { line: 13, script: 'pwd', shown: undefined },
  ]);
});

/** The pages, and the configuration of Envoy that each starts. */
const pages = [
  ['README.md', 'envoy.yaml', 10],
  ['rate-limits-only.md', 'rate-limits-only.yaml', 8],
] as const;

for (const [file, configuration, leastSteps] of pages) {
  t.test(`every command of ${file} does what the page shows`, (t) =>
    followPage(t, file, configuration, leastSteps),
  );
}

async function followPage(t: Test, file: string, configuration: string, leastSteps: number): Promise<void> {
  const { path: folder, remove } = temporaryFolder();
  t.teardown(remove);
  // As /tmp/tutorial is: as root, PostgreSQL runs as another user, who must reach its folder.
  await chmod(folder, 0o755);
  const { move, env } = await movePorts();
  const page = await readFile(join(tutorial, file), 'utf8');
  const envoyFile = join(folder, 'envoy.yaml');
  await writeFile(envoyFile, inPeace(move(await readFile(join(tutorial, configuration), 'utf8'))));
  const { PATH, HOME } = process.env;
  const shell = startDocumentShell({ cwd: checkout, env: { PATH, HOME, CI: 'true', ...env }, folder });
  t.teardown(shell.close);

  const steps = documentSteps(page);
  t.ok(steps.length >= leastSteps, 'the page has commands');
  for (const { line, script, shown } of steps) {
    const moved = inPeace(move(script))
      .replaceAll('/tmp/tutorial', join(folder, 'tutorial'))
      .replaceAll(`$TOLLGATE/docs/tutorial/${configuration}`, envoyFile);
    const { exitCode, output } = await shell.run(moved);
    t.equal(exitCode, 0, `the commands of line ${line} succeed`);
    if (shown !== undefined) t.ok(isAsShown(inPeace(shown), output), `line ${line}: ${output}`);
    if (!t.passing()) break;
  }
}
