import { focusWhole } from '@countersign/client/ui'
import { ageOf, type Listing, shownFiles, sizeOf } from '@countersign/example-page/listing'
import { SafeText } from '@countersign/registry/solid/SafeText'
import { createMemo, createSignal, For, Show } from 'solid-js'

/** The files that `list_files` returned. */
export function FileListing(props: { listing: Listing }) {
  const [isWhole, setIsWhole] = createSignal(false)
  const files = createMemo(() => shownFiles(props.listing, isWhole()))
  return (
    <div class="tool-output" tabIndex={-1}>
      <p class="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <div class="listing" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col">Size</th>
              <th scope="col">Changed</th>
            </tr>
          </thead>
          <tbody>
            <For each={files().shown}>
              {(file) => (
                <tr>
                  <th scope="row">
                    <SafeText text={file.path} />
                  </th>
                  <td>{sizeOf(file.bytes)}</td>
                  <td>{ageOf(file.daysOld)}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
      <Show when={files().hidden > 0}>
        <button
          type="button"
          class="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            setIsWhole(true)
          }}
        >
          Show {files().hidden.toLocaleString('en')} more files
        </button>
      </Show>
    </div>
  )
}
