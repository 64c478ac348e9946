# SPDX-License-Identifier: BSD-2-Clause
#
# cmake -DBUILD_FOLDER=FOLDER -P uninstall.cmake
#
# Removes each file that "cmake --install" has listed in a manifest of the build folder: install_manifest.txt, or
# install_manifest_COMPONENT.txt with --component. Then removes the folders that are empty, except folders that each
# system has.

file(GLOB manifests "${BUILD_FOLDER}/install_manifest.txt" "${BUILD_FOLDER}/install_manifest_*.txt")
if(NOT manifests)
  message(FATAL_ERROR "${BUILD_FOLDER} has no install_manifest.txt: nothing was installed from this build folder")
endif()
set(files "")
foreach(manifest IN LISTS manifests)
  file(STRINGS "${manifest}" listed)
  list(APPEND files ${listed})
endforeach()
list(REMOVE_DUPLICATES files)
set(folders "")
foreach(file IN LISTS files)
  file(REMOVE "$ENV{DESTDIR}${file}")
  if(EXISTS "$ENV{DESTDIR}${file}" OR IS_SYMLINK "$ENV{DESTDIR}${file}")
    message(FATAL_ERROR "$ENV{DESTDIR}${file} cannot be removed")
  endif()
  get_filename_component(folder "${file}" DIRECTORY)
  list(APPEND folders "${folder}")
endforeach()

# Sets the variable to whether the folder is the ancestor, or is below it. Both are compared as texts: a prefix may have
# characters that a regular expression does not match literally.
function(is_below folder ancestor variable)
  string(FIND "${folder}/" "${ancestor}/" position)
  if(position EQUAL 0 OR ancestor STREQUAL "/")
    set(${variable} TRUE PARENT_SCOPE)
  else()
    set(${variable} FALSE PARENT_SCOPE)
  endif()
endfunction()

# The prefix is the lowest folder that has all files.
list(REMOVE_DUPLICATES folders)
list(GET folders 0 prefix)
foreach(folder IN LISTS folders)
  is_below("${folder}" "${prefix}" below)
  while(NOT below)
    get_filename_component(prefix "${prefix}" DIRECTORY)
    is_below("${folder}" "${prefix}" below)
  endwhile()
endforeach()

set(kept "^(/|/opt|/usr|/usr/local|/usr(/local)?/(bin|include|lib|lib64|share|share/man))$")
foreach(folder IN LISTS folders)
  set(status 0)
  while(status EQUAL 0 AND NOT folder MATCHES "${kept}")
    is_below("${folder}" "${prefix}" below)
    if(NOT below)
      break()
    endif()
    # fails if the folder is not empty
    execute_process(
      COMMAND rmdir "$ENV{DESTDIR}${folder}"
      RESULT_VARIABLE status
      ERROR_QUIET)
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
endforeach()
list(LENGTH files count)
message(STATUS "${count} files removed from $ENV{DESTDIR}${prefix}")
file(REMOVE ${manifests})
