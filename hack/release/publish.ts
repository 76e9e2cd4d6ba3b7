import { resolve } from 'node:path';
import { imageBuildCommand, services } from '../images/build-images.ts';
import { checksumsFile } from './artifacts.ts';

/** Published artifacts and their addresses. */
export interface Publication {
  readonly version: string;
  /** The commit. */
  readonly revision: string;
  /** Host and path that images and charts go below. */
  readonly registry: string;
  /** Where the files are. */
  readonly folder: string;
  readonly files: readonly string[];
  /** Base images, by argument. */
  readonly bases: Readonly<Record<string, string>>;
}

/** For both processors, with what they are made of and how they were made beside them. */
const imageOptions = ['--platform=linux/amd64,linux/arm64', '--sbom=true', '--provenance=mode=max', '--push'];

/**
 * The commands that publish a release, in order: what others refer to comes first, what tells
 * people of it comes last.
 */
export function publishCommands(publication: Publication): readonly (readonly string[])[] {
  const { version, revision, registry, folder, files, bases } = publication;
  const path = (file: string) => `${folder}/${file}`;
  const charts = files.filter((file) => isChart(file, version));
  const sdk = files.filter((file) => file.endsWith('.tgz') && !isChart(file, version));
  const others = files.filter((file) => file.endsWith('.yaml') || file === checksumsFile);
  const sign = (artifact: string) => ['node', 'hack/release/sign.ts', artifact];
  return [
    ...services.flatMap((service) => [
      imageBuildCommand({ service, version, revision, registry, bases, options: imageOptions }),
      sign(`${registry}/tollgate/${service}:${version}`),
    ]),
    ...charts.flatMap((file) => [
      ['helm', 'push', path(file), `oci://${registry}/charts`],
      sign(`${registry}/charts/${file.slice(0, -`-${version}.tgz`.length)}:${version}`),
    ]),
    ['cosign', 'sign-blob', '--yes', `--bundle=${path(signatureFile)}`, path(checksumsFile)],
    ...sdk.map((file) => ['npm', 'publish', resolve(path(file)), '--access=public', '--provenance']),
    [
      ...['gh', 'release', 'create', `v${version}`, '--verify-tag', `--title=v${version}`],
      `--notes-file=${path(notesFile)}`,
      ...[...charts, ...sdk, ...others, signatureFile].map(path),
    ],
  ];
}

/** The signature of the checksums, with its certificate. */
const signatureFile = `${checksumsFile}.sigstore.json`;

/** File with the notes of the release, from the CHANGELOG. */
export const notesFile = 'release-notes.md';

/** npm puts the scope of a package before its name. */
function isChart(file: string, version: string): boolean {
  return file.endsWith(`-${version}.tgz`) && !file.startsWith('tollgate-oauth2-client-');
}

/**
 * Notes of a version, or of the unreleased changes, from the CHANGELOG.
 *
 * @throws Error when it has no such section.
 */
export function releaseNotes(changelog: string, heading: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split('\n', 1)[0]?.split(' ')[0] === heading);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## ${heading}"`);
  return section.slice(section.indexOf('\n') + 1).trim();
}
