import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import type { Test } from 'tap';
import type { ServiceImage } from '../charts/kubelet/service-image.ts';
import { imageBuildArguments, type Service } from './build-images.ts';

const repository = resolve(import.meta.dirname, '../..');

/** `hack/setup.sh test` makes it: images that replace the bases of the Dockerfile, and npm. */
const basesFolder = join(repository, '.tools/image-bases');

/** npm installs up to 200 packages; a cold cache and a busy machine take minutes. */
const buildTimeoutMs = 600_000;

const run = promisify(execFile);

/** An image that was built from the Dockerfile, and its files. */
export interface BuiltImage extends ServiceImage {
  readonly rootFolder: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Configuration of an image, from buildah. */
interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/**
 * Why images cannot be built here; `false` when they can.
 *
 * @throws Error in CI, when they cannot.
 */
export function imageBuildsAreImpossible(): string | false {
  const missing = programIsMissing('buildah');
  if (missing !== false || (existsSync(basesFolder) && process.getuid?.() === 0)) return missing;
  const reason = 'images are built by root on Linux: run hack/setup.sh test as root';
  if (process.env.CI === 'true') throw new Error(reason);
  return `left out: ${reason}`;
}

/** Builds images by buildah, in a storage of its own that goes when the test ends. */
export class ImageBuilder {
  readonly #folder: string;

  constructor(t: Test) {
    const folder = temporaryFolder();
    this.#folder = folder.path;
    // Before the folder goes: the files of images are mounted in it.
    t.teardown(async () => {
      await this.#buildah(['umount', '--all']);
      folder.remove();
    });
    execFileSync('cp', ['-a', join(basesFolder, 'storage'), join(this.#folder, 'storage')]);
    // RUN --mount=type=cache keeps packages of npm here.
    const caches = join(realpathSync(basesFolder), 'caches');
    mkdirSync(caches, { recursive: true });
    mkdirSync(join(this.#folder, 'tmp'));
    symlinkSync(caches, join(this.#folder, 'tmp/buildah-cache'));
  }

  /** Builds the image of a service, or another stage of the Dockerfile for it. */
  async build(service: Service, stage = ''): Promise<BuiltImage> {
    const image = `${service}${stage}`;
    const processor = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const args = imageBuildArguments({
      service,
      version: '1.2.3',
      revision: 'abc',
      registry: '',
      bases: { NODE_IMAGE: 'localhost/tollgate-base-build', BASE_IMAGE: 'localhost/tollgate-base-run' },
      options: [
        ...['--isolation=chroot', '--pull-never', '--format=docker', `--platform=linux/${processor}`],
        ...(stage === '' ? [] : [`--target=${stage}`]),
        ...(await this.#buildVolumes()),
        `--tag=${image}`,
      ],
    });
    await this.#buildah(['build', ...args]);
    const container = await this.#buildah(['from', '--pull-never', image]);
    return await this.#readImage(image, await this.#buildah(['mount', container]));
  }

  async #readImage(image: string, rootFolder: string): Promise<BuiltImage> {
    // Parsed boundary: an image that buildah has made.
    const { Docker } = JSON.parse(await this.#buildah(['inspect', '--type=image', image])) as {
      readonly Docker: { readonly config: ImageConfig };
    };
    const { User, Env, Entrypoint, Cmd, WorkingDir, Labels } = Docker.config;
    const [path = ''] = Entrypoint;
    return {
      rootFolder,
      // A path, or a name of the base image that has a shell.
      files: { [path.startsWith('/') ? path : join('/usr/local/bin', path)]: process.execPath },
      workingFolder: WorkingDir,
      environment: Object.fromEntries(Env.map((line) => line.split(/=(.*)/s).slice(0, 2))),
      entrypoint: Entrypoint,
      command: Cmd,
      user: Number(User.split(':')[0]),
      labels: Labels,
    };
  }

  /**
   * Node and npm, and how npm reaches its registry from this machine. They are mounted while
   * commands run, so no credential becomes part of an image.
   */
  async #buildVolumes(): Promise<string[]> {
    const { NODE_OPTIONS: _ofTests, ...env } = process.env;
    const keys = ['registry', 'cafile', 'proxy', 'https-proxy', 'noproxy', 'userconfig'];
    const { stdout } = await run('npm', ['config', 'get', ...keys], { env, cwd: repository });
    const settings = new Map(stdout.split('\n').map((line) => [line.replace(/=.*/s, ''), line]));
    const value = (key: string) => settings.get(key)?.replace(/^[^=]*=(?:null$)?/, '') ?? '';
    const authorities = value('cafile') || (env.NODE_EXTRA_CA_CERTS ?? '');
    const npmrc = join(this.#folder, 'npmrc');
    const lines = ['registry', 'proxy', 'https-proxy', 'noproxy'].filter((key) => value(key) !== '');
    writeFileSync(
      npmrc,
      [
        // Credentials of registries.
        ...(existsSync(value('userconfig')) ? [readFileSync(value('userconfig'), 'utf8')] : []),
        ...lines.map((key) => settings.get(key)),
        ...(authorities === '' ? [] : ['cafile=/etc/npm-authorities.crt']),
        // Packages of the lock file are in the cache, once they were fetched.
        ...['prefer-offline=true', 'update-notifier=false', ''],
      ].join('\n'),
    );
    const files = {
      '/usr/local/bin/node': process.execPath,
      '/usr/local/lib/node_modules/npm': join(realpathSync(basesFolder), 'npm/node_modules/npm'),
      '/usr/local/etc/npmrc': npmrc,
      '/etc/npm-authorities.crt': authorities,
    };
    return Object.entries(files).flatMap(([target, source]) =>
      existsSync(source) ? [`--volume=${realpathSync(source)}:${target}:ro`] : [],
    );
  }

  /** @returns what it printed, without the last line break. */
  async #buildah(args: readonly string[]): Promise<string> {
    const storage = [
      '--storage-driver=vfs',
      `--root=${this.#folder}/storage`,
      `--runroot=${this.#folder}/run`,
    ];
    const { NODE_OPTIONS: _ofTests, ...env } = process.env;
    // Its children would outlive a test that is killed, and keep the lock of the caches.
    const together = ['--pdeathsig=KILL', findBinary('unshare'), '--pid', '--fork', '--kill-child'];
    const command = [...together, findBinary('buildah'), ...storage, ...args];
    const { stdout } = await run(findBinary('setpriv'), command, {
      cwd: repository,
      env: { ...env, TMPDIR: join(this.#folder, 'tmp') },
      timeout: buildTimeoutMs,
      maxBuffer: 50_000_000,
    });
    return stdout.trimEnd();
  }
}
