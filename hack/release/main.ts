// make release: makes the files of a release, and says what would publish them. With --publish it
// does.
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { chosenBases } from '../images/build-images.ts';
import { buildArtifacts } from './artifacts.ts';
import { notesFile, publishCommands, releaseNotes } from './publish.ts';
import { tollgateVersion, versionDrift, writeVersion } from './versions.ts';

const usage = `node hack/release/main.ts [--publish --tag=v1.2.3] [--folder=dist]
  Makes charts, CRD, SDK and their checksums in a folder, and prints the commands that publish them and the images.
  --publish runs these commands; the tag must be that of the version, and the CHANGELOG must have a section of it.
  IMAGE_REGISTRY is the host and path that images and charts go below.
node hack/release/main.ts --set-version=1.2.3
  Writes the version into all places: package.json of every workspace, and the charts.
`;

const { values } = parseArgs({
  options: {
    publish: { type: 'boolean', default: false },
    tag: { type: 'string' },
    folder: { type: 'string', default: 'dist' },
    'set-version': { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
if (values.help) process.stdout.write(usage);
else if (values['set-version'] !== undefined) await writeVersion('.', values['set-version']);
else await release(values);

async function release(options: {
  publish: boolean;
  tag?: string | undefined;
  folder: string;
}): Promise<void> {
  const { publish, tag, folder } = options;
  const { IMAGE_REGISTRY: registry = publish ? '' : '$IMAGE_REGISTRY' } = process.env;
  const version = await tollgateVersion('.');
  const problems = await versionDrift('.');
  if (publish && tag !== `v${version}`) problems.push(`the tag is ${tag}, and package.json has ${version}`);
  if (registry === '')
    problems.push('IMAGE_REGISTRY is missing: host and path that images and charts go below');
  if (problems.length > 0) {
    process.stderr.write(`not released:\n${problems.map((problem) => `  ${problem}\n`).join('')}`);
    process.exitCode = 1;
    return;
  }
  const notes = releaseNotes(await readFile('CHANGELOG.md', 'utf8'), publish ? version : 'Unreleased');
  const files = await buildArtifacts('.', folder);
  await writeFile(`${folder}/${notesFile}`, `${notes}\n`);
  for (const file of files) process.stdout.write(`${folder}/${file}\n`);

  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const bases = chosenBases(process.env);
  const commands = publishCommands({ version, revision, registry, folder, files, bases });
  process.stdout.write(publish ? '\n' : '\nNothing is published. With --publish:\n');
  for (const [command = '', ...args] of commands) {
    process.stdout.write(`  ${[command, ...args].join(' ')}\n`);
    if (publish) execFileSync(command, args, { stdio: 'inherit' });
  }
}
