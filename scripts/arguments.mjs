/** The arguments after `npm run NAME --`. pnpm passes the `--` on, npm removes it. */
export const given = process.argv.slice(process.argv[2] === '--' ? 3 : 2)
